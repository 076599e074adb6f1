#include "files/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  // The process id keeps two programs that save to one name from writing into one file.
  temporary_ = path_;
  temporary_ += fmt::format(".{}.tmp", getpid());
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    from += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) fail("sync");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  close(std::exchange(descriptor_, -1));
  // The new name itself is on disk only once its folder is.
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  throw Error(fmt::format("{}: cannot {} it: {}.{}", path_.string(), doing, std::strerror(error),
                          error == ENOENT ? " Fix: create its folder first." : ""));
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  // EINVAL: cannot be synced; EACCES: others may list it, but not we.
  if (synced || error == EINVAL || error == ENOTSUP || error == EACCES) return;
  throw Error(fmt::format("{}: cannot sync it: {}.", folder.string(), std::strerror(error)));
}

}  // namespace distributed_utils::detail
