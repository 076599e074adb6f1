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

/// A batch of these samples, as Kind::fetch tells it.
Payload samples_of(Split split, c10::ArrayRef<size_t> indices);

/// The names of the task's splits and metrics, once.
void begins(const Task& task);
/// Prepared data of this name are wanted: they are there, or are about to be made.
void prepares(std::string_view name, bool found);
/// Progress has planned a run.
void run_planned(int64_t world_size, int64_t total_steps);
/// make_model is about to make a model.
void model_begins();
/// Where WORLDSIZE_FINGERPRINTS is set: gives each element of constant fp64 parameters (a norm's
/// ones, a bias's zeros) a small part of its own, so that it is known by its value wherever a
/// program takes it. The same on all ranks and in every run.
void tell_apart(Model& model);
/// make_model returns this.
void model_made(const std::shared_ptr<Model>& model);
/// A dataset of this size has fetched these samples.
void fetched(Split split, size_t size, c10::ArrayRef<size_t> indices, const Batch& batch);
void forward_begins(const Model& model, const Input& input);
/// It also watches whether backward() comes to this loss.
void loss_computed(const Loss& loss, const Target& target);
/// The parameters of the optimizer's model, its gradients, and which of them the optimizer is about
/// to change with which learning rates.
void step_begins(const torch::optim::Optimizer& optimizer);
void step_ends();
void evaluation_begins();
void reported(const Score& score);

}  // namespace tasks::evidence
