#pragma once
/// The serial loaders over tasks::Dataset, compiled once in the library: every trainer uses them,
/// and compiling them takes a fifth of the time that a trainer's compilation takes.
#include <torch/data/dataloader.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>

#include "tasks/task.hpp"

extern template class torch::data::StatelessDataLoader<tasks::Dataset,
                                                       torch::data::samplers::RandomSampler>;
extern template class torch::data::StatelessDataLoader<tasks::Dataset,
                                                       torch::data::samplers::SequentialSampler>;
