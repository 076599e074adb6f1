#pragma once
/// A model that ranks saved in a folder, each of them a part: which part lies in which file.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "deviation.hpp"

namespace replay {

struct SavedFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::optional<Flat> values;  ///< of all its tensors; nothing where it cannot be read
};

/// Those in the folder and below it, in the order of their names.
std::vector<SavedFile> saved_files(const std::filesystem::path& folder);

/// epochs: the model after each. Where a part lies is found by its values, so that files may have
/// any names and cut the model in any way.
///
///   files      file; bytes; readable: whether it could be read; own: how many of the model's
///              elements are in it
///   epoch      the one (from 1) after which the model was as most of the files say; 0: none
///   elements   of the model
///   missing    of these, that are in no file
///   several    that are in several files, or several times in one
///   older      that the files have as they were after another epoch
nlohmann::json what_is_saved(const std::vector<SavedFile>& files, const std::vector<Flat>& epochs);

}  // namespace replay
