#pragma once
#include <filesystem>

namespace distributed_utils::detail {

/// Gives a folder that was made under another name beside it, and whose files are on disk already,
/// its own. One that has that name is replaced: at every instant one of the two has it. Throws
/// Error; then the name is as it was.
void commit_folder(const std::filesystem::path& made, const std::filesystem::path& name);

}  // namespace distributed_utils::detail
