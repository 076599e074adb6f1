#include "tasks/prepared.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include "evidence.hpp"
#include "tasks/options.hpp"

namespace tasks {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? fs::path() : fs::path(value);
}

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What the names of this machine's unfinished folders begin with.
std::string start_of_unfinished(const fs::path& folder) {
  return fmt::format("{}.part-{}-", folder.filename().string(), host());
}

bool runs(std::string_view number) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
  if (error != std::errc() || end != number.data() + number.size()) return true;  // not ours
  return kill(pid, 0) == 0 || errno != ESRCH;
}

// Of processes of this machine that were killed while they filled theirs.
void remove_leftovers(const fs::path& folder) {
  const auto start = start_of_unfinished(folder);
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder.parent_path())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(start) && !runs(std::string_view(name).substr(start.size()))) {
      leftovers.push_back(entry.path());
    }
  }
  std::error_code ignored;  // another process may be at it as well
  for (const auto& leftover : leftovers) fs::remove_all(leftover, ignored);
}

// So that a folder that is there after a loss of power is whole.
void sync_all(const fs::path& folder) {
  const auto sync = [](const fs::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
  };
  for (const auto& entry : fs::recursive_directory_iterator(folder)) sync(entry.path());
  sync(folder);
}

// Removed unless it has got its real name.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& folder)
      : path_(folder.parent_path() / fmt::format("{}{}", start_of_unfinished(folder), getpid())) {
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
    // Another process may have been first with the same content.
    if (error && !fs::is_directory(folder)) throw fs::filesystem_error("rename", path_, error);
  }

 private:
  fs::path path_;
};

void make(const fs::path& folder, const std::function<void(const fs::path&)>& fill) {
  remove_leftovers(folder);
  const Unfinished unfinished(folder);
  fill(unfinished.path());
  sync_all(unfinished.path());
  unfinished.rename_to(folder);
}

}  // namespace

fs::path cache_folder() {
  if (auto own = variable("WORLDSIZE_CACHE"); !own.empty()) return own;
  if (const auto caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches / "worldsize";
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "worldsize";
  return fs::temp_directory_path() / fmt::format("worldsize-{}", getuid());
}

fs::path prepared(const std::string& name, const std::function<void(const fs::path&)>& fill) try {
  const auto folder = cache_folder() / name;
  const bool found = fs::is_directory(folder);
  evidence::prepares(name, found);
  if (found) return folder;
  fs::create_directories(folder.parent_path());
  make(folder, fill);
  return folder;
} catch (const fs::filesystem_error& error) {
  throw Error(
      fmt::format("cannot write prepared data to {} ({}).\nFix: free some space, or choose another "
                  "folder: WORLDSIZE_CACHE=<folder>.",
                  cache_folder().string(), error.code().message()));
}

}  // namespace tasks
