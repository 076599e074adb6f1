#pragma once
#include <filesystem>
#include <vector>

#include "checkpoint/manifest.hpp"

namespace distributed_utils::detail {

/// Throws Error, naming the tensor and the files in `folder`, unless the pieces that the files hold
/// of each tensor agree on its shape and type, lie within it, do not overlap, and are all of it.
void check_cover(const std::filesystem::path& folder, const std::vector<FileEntry>& files);

}  // namespace distributed_utils::detail
