#include "cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

namespace fs = std::filesystem;

// Held until it goes; the kernel frees it when its process ends, however that ends.
class CacheLock {
 public:
  explicit CacheLock(const fs::path& file)
      : file_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~CacheLock() {
    if (file_ >= 0) close(file_);
  }
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  int file_;
};

// So that a folder that is there after a loss of power is whole.
void sync_all(const fs::path& folder) {
  const auto sync = [](const fs::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
  };
  for (const auto& entry : fs::directory_iterator(folder)) sync(entry.path());
  sync(folder);
}

// Removed unless it has got its real name.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& folder)
      : path_(folder.string() + fmt::format(".{}.unfinished", getpid())) {
    fs::remove_all(path_);  // of a process that had this number and was killed
    fs::create_directories(path_);
  }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const fs::path& path() const { return path_; }
  void rename_to(const fs::path& folder) const {
    std::error_code error;
    fs::rename(path_, folder, error);
    // Another process, which the lock did not stop, may have been first with the same content.
    if (error && !fs::is_directory(folder)) throw fs::filesystem_error("rename", path_, error);
  }

 private:
  fs::path path_;
};

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

fs::path data_cache() {
  if (auto own = variable("WORLDSIZE_DATA_CACHE"); !own.empty()) return own;
  if (const auto caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches / "worldsize";
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "worldsize";
  return fs::temp_directory_path() / fmt::format("worldsize-{}", getuid());
}

fs::path made_once(const fs::path& cache, const std::string& name,
                   const std::function<void(const fs::path&)>& fill) try {
  const auto folder = cache / name;
  if (fs::is_directory(folder)) return folder;
  fs::create_directories(cache);
  const CacheLock lock(cache / (name + ".lock"));
  if (fs::is_directory(folder)) return folder;
  const Unfinished unfinished(folder);
  fill(unfinished.path());
  sync_all(unfinished.path());
  unfinished.rename_to(folder);
  return folder;
} catch (const fs::filesystem_error& error) {
  throw Error(
      fmt::format("the data cache {} cannot be written to ({}). Mend: name another folder: "
                  "WORLDSIZE_DATA_CACHE=<folder>.",
                  cache.string(), error.code().message()));
}

}  // namespace tasks::summaries
