#include "tasks/loaders.hpp"

template class torch::data::StatelessDataLoader<tasks::Dataset,
                                                torch::data::samplers::RandomSampler>;
template class torch::data::StatelessDataLoader<tasks::Dataset,
                                                torch::data::samplers::SequentialSampler>;
