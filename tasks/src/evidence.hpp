#pragma once
/// What a task is made to do, for a checker (see instrumentation/events.hpp). Each of these does
/// nothing in a process that does not record.
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "instrumentation/tensors.hpp"
#include "tasks/task.hpp"

namespace tasks::evidence {

using instrumentation::Payload;

/// A batch of these samples, as Kind::fetch and Kind::taken tell it.
Payload samples_of(Split split, c10::ArrayRef<size_t> indices);

/// The names of the task's splits and metrics, once.
void begins(const Task& task);
/// make_model returns this. Names and buffers are those of the last model made.
void model_made(const std::shared_ptr<Model>& model);
void optimizer_made(const std::vector<torch::Tensor>& parameters);
void forward_begins(const Model& model);
void loss_computed(const Loss& loss);
/// The parameters that the optimizer is about to change, and the gradients and learning rates with
/// which.
void step_begins(const torch::optim::Optimizer& optimizer);
void evaluation_begins();
void reported(const Score& score);

}  // namespace tasks::evidence
