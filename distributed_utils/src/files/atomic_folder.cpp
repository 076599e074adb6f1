#include "files/atomic_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>  // NOLINT(modernize-deprecated-headers): renameat2 is Linux's

#include <cerrno>
#include <cstring>
#include <system_error>

#include "distributed_utils/error.hpp"
#include "files/atomic_file.hpp"

namespace distributed_utils::detail {

void commit_folder(const std::filesystem::path& made, const std::filesystem::path& name) {
  sync_folder(made);
  if (rename(made.c_str(), name.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) {
      throw Error(fmt::format("{}: cannot rename it: {}.", made.string(), std::strerror(errno)));
    }
    // One of this name is there: they change places.
    if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) != 0) {
      throw Error(
          fmt::format("{}: already exists, and this file system cannot replace it in one operation "
                      "({}). Fix: remove it, or save elsewhere.",
                      name.string(), std::strerror(errno)));
    }
  }
  sync_folder(name.has_parent_path() ? name.parent_path() : ".");
  std::error_code ignored;
  std::filesystem::remove_all(made, ignored);
}

}  // namespace distributed_utils::detail
