#include "data/place.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFolderOfYourOwn = "Fix: choose a folder of your own: --into FOLDER.";

Error refused(const fs::path& folder, const std::string& why) {
  return Error(folder.string() + ": Cannot write to it (" + why + "). " + kFolderOfYourOwn);
}

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

fs::path cache_folder() {
  if (const auto folder = variable("WORLDSIZE_CACHE"); !folder.empty()) return folder;
  if (const auto folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder / "worldsize";
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "worldsize";
  throw Error(std::string("HOME is not set, so there is no cache folder. ") + kFolderOfYourOwn);
}

Place::Place(const fs::path& folder) : folder_(fs::absolute(folder).lexically_normal()) {
  if (!folder_.has_filename()) folder_ = folder_.parent_path();  // "FOLDER/"
  std::error_code failure;
  fs::create_directories(unfinished(), failure);
  if (failure) throw refused(folder_, failure.message());
  lock_ = Descriptor(
      ::open((unfinished() / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));  // NOLINT
  if (!lock_.is_open()) throw refused(folder_, std::generic_category().message(errno));
  // File systems without locks go without.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw Error(folder_.string() +
                ": Another ./workbook data is using this folder. Fix: wait for it, or choose "
                "another folder: --into FOLDER.");
  }
}

bool Place::holds_something() const {
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path() != unfinished()) return true;
  }
  return false;
}

void Place::expect_space(uintmax_t bytes) const {
  const auto free = fs::space(folder_).available;
  if (free >= bytes) return;
  throw Error(folder_.string() + ": The disk has " + bytes_of(free) + " free, and " +
              bytes_of(bytes) +
              " are needed. Fix: free some space, or choose another disk: --into FOLDER.");
}

void Place::clean_up() { fs::remove_all(unfinished()); }

std::string bytes_of(uintmax_t bytes) {
  constexpr std::array<const char*, 5> units{"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  auto value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fixed(value, 1) + " " + units.at(unit);
}

}  // namespace checker::data
