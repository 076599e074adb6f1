#include "prepared.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "tasks/options.hpp"

namespace tasks::images {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMend = "Free some space, or name another folder: WORLDSIZE_CACHE=<folder>.";

// Held by one process of a node. File systems without locks are not an error: each process then
// writes for itself.
class Lock {
 public:
  explicit Lock(const fs::path& file)
      : descriptor_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) {
      throw Error(
          fmt::format("{}: {}. {}", file.string(), std::generic_category().message(errno), kMend));
    }
    while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { close(descriptor_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What programs of this node left that were killed while they wrote. The lock is ours.
void remove_leftovers(const fs::path& cache, const std::string& start) {
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(cache)) {
    if (entry.path().filename().string().starts_with(start)) leftovers.push_back(entry.path());
  }
  for (const auto& leftover : leftovers) fs::remove_all(leftover);
}

void write_once(const fs::path& folder, const std::function<void(const fs::path&)>& write) {
  const fs::path cache = folder.parent_path();
  const std::string start = fmt::format("{}.part-{}-", folder.filename().string(), host());
  remove_leftovers(cache, start);
  const fs::path part = cache / fmt::format("{}{}", start, getpid());
  fs::create_directories(part);
  write(part);
  std::error_code failure;
  fs::rename(part, folder, failure);
  if (!failure) return;
  fs::remove_all(part);
  // Another node may have been first.
  if (!fs::exists(folder)) {
    throw Error(fmt::format("{}: {}. {}", folder.string(), failure.message(), kMend));
  }
}

}  // namespace

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return fs::path(value == nullptr ? "" : value);
  };
  if (const auto folder = variable("WORLDSIZE_CACHE"); !folder.empty()) return folder;
  if (const auto folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder / "worldsize";
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "worldsize";
  return fs::temp_directory_path() / fmt::format("worldsize-{}", getuid());
}

fs::path prepared(const fs::path& cache, const std::string& name,
                  const std::function<void(const fs::path&)>& write) {
  const fs::path folder = cache / name;
  if (fs::exists(folder)) return folder;
  try {
    fs::create_directories(cache);
    const Lock lock(cache / (name + ".lock"));
    if (!fs::exists(folder)) write_once(folder, write);
  } catch (const fs::filesystem_error& error) {
    throw Error(fmt::format("{}: {}. {}", error.path1().string(), error.code().message(), kMend));
  }
  return folder;
}

}  // namespace tasks::images
