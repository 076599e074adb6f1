#pragma once
#include "checkpoint/manifest.hpp"
#include "checkpoint/saved_tensors.hpp"
#include "distributed_utils/checkpoint.hpp"

namespace distributed_utils {

/// What was read from the files.
struct Checkpoint::Content {
  detail::Manifest manifest;
  std::filesystem::path folder;
  Group group;
  bool same_world = false;
  bool restored = false;
  detail::SavedTensors model;
  detail::SavedTensors optimizer;
  StateDict generators;  // this rank's, in the same world only
  std::vector<StateDict> rank_states;
};

}  // namespace distributed_utils
