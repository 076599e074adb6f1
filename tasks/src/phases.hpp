#pragma once
/// Where a training step's time goes (see Phase in instrumentation/events.hpp), told by the seams
/// that every trainer passes. All of this does nothing in a process that is neither recorded nor
/// monitored, and on other threads than the one that trains: a loader's workers fetch ahead.
#include <optional>

#include "tasks/task.hpp"

namespace tasks::phases {

/// To be called once, at the start, by the thread that trains.
void begin();

void fetches(Split split);  ///< a dataset is about to fetch a batch
/// A batch is on its device; split: if it is known.
void taken(torch::Device device, std::optional<Split> split);
void evaluated(const Loss& loss, const std::vector<Metric>& metrics);  ///< without gradients
void evaluation_ends();  ///< its outcome is put into words
void backward_begins();  ///< the mean is made that backward() starts from
void optimizer_begins(const torch::optim::Optimizer& optimizer);
void optimizer_ends();
/// An optimizer step has ended, the `number`th from 1. last: nothing of its epoch comes after it.
void step_ends(int64_t number, bool last, const Loss& loss);
/// A CUDA graph is about to repeat a whole step, whose parts nobody sees.
void replay_begins(const torch::optim::Optimizer& optimizer);
void checkpoint_begins();
void checkpoint_ends();

}  // namespace tasks::phases
