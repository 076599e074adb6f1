#pragma once
#include <c10/core/ScalarType.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "distributed_utils/safetensors.hpp"

namespace distributed_utils::detail {

/// safetensors' name of a type; null if it has none.
const char* dtype_name(at::ScalarType type);

/// Passes on what save_file writes, piece by piece. `path` only names the file in errors.
void write_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const void*, size_t)>& write);

}  // namespace distributed_utils::detail
