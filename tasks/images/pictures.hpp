#pragma once
/// Picture files as samples.
#include <functional>
#include <memory>
#include <vector>

#include "folders.hpp"
#include "tasks/task.hpp"
#include "views.hpp"

namespace tasks::images {

struct PicturesOptions {
  ViewOptions view;
  bool training = false;  ///< crops and mirrors at random, another way in each epoch
  uint64_t seed = 0;      ///< of what is random
  torch::Dtype type = torch::kFloat;
  bool channels_last = false;
  bool keep_decoded = false;  ///< each picture is decoded once and kept in memory
};

/// Inputs: floats [samples, 3, side, side], normalised as ImageNet's are; targets: classes, int64
/// [samples]. What is random about a sample follows from seed, epoch and index: not from the
/// thread, the rank or the batch. Fetching throws Error for a file that is not a picture.
std::shared_ptr<const Dataset::Source> make_source(std::vector<Picture> pictures,
                                                   const PicturesOptions& options);

}  // namespace tasks::images
