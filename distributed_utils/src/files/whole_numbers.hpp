#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/file_error.hpp"

namespace distributed_utils::detail {

/// A list of whole numbers in a file's JSON, where nlohmann's get() would take 0.5 for 0. Throws
/// Error, naming the file and what the list is, for anything else.
inline std::vector<int64_t> whole_numbers(const std::filesystem::path& file,
                                          const nlohmann::json& list, const std::string& what) {
  const auto is_whole = [](const auto& entry) { return entry.is_number_integer(); };
  if (!list.is_array() || !std::ranges::all_of(list, is_whole)) {
    fail_at(file, what + " is not a list of whole numbers, so the header is damaged");
  }
  return list.get<std::vector<int64_t>>();
}

}  // namespace distributed_utils::detail
