#include "once.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

#include "tasks/options.hpp"

namespace tasks::weather {
namespace {

namespace fs = std::filesystem;

/// A lock that other processes respect and that ends with its owner. Some file systems have none:
/// then each process makes a folder of its own, and the first to rename it wins.
class FileLock {
 public:
  explicit FileLock(const fs::path& file)
      : descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw Error(fmt::format("{}: cannot be written", file.string()));
    held_ = flock(descriptor_, LOCK_EX) == 0;
  }
  ~FileLock() { close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }

 private:
  int descriptor_;
  bool held_ = false;
};

/// Who holds the lock knows that nobody works in these.
void remove_leftovers(const fs::path& folder, const std::string& prefix) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path());
  }
}

}  // namespace

void make_once(const fs::path& folder, const std::function<void(const fs::path&)>& fill) try {
  if (fs::exists(folder)) return;
  fs::create_directories(folder.parent_path());
  const FileLock lock(folder.string() + ".lock");
  if (fs::exists(folder)) return;
  const auto prefix = folder.filename().string() + ".part-";
  if (lock.held()) remove_leftovers(folder.parent_path(), prefix);
  auto name = (folder.parent_path() / (prefix + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) throw Error(name + ": cannot be made");
  try {
    fill(name);
    std::error_code failure;
    fs::rename(name, folder, failure);
    // Somebody else may have been first where there are no locks.
    if (failure && !fs::exists(folder)) throw fs::filesystem_error("rename", folder, failure);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(name, ignored);
    throw;
  }
  fs::remove_all(name);
} catch (const fs::filesystem_error& error) {
  throw Error(fmt::format("{}: cannot be made: {}. WORLDSIZE_CACHE=<folder> names another place.",
                          folder.string(), error.code().message()));
}

}  // namespace tasks::weather
