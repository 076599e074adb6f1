#include "support/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

std::string read_file(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) throw Error(file.string() + " is a folder, not a file.");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream && stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
  if (!stream.is_open() || stream.bad() || text.bad()) {
    throw Error("Cannot read " + file.string() + ": " + std::strerror(errno) + ".");
  }
  return std::move(text).str();
}

void write_file(const fs::path& file, std::string_view text) {
  std::error_code ignored;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), ignored);
  const fs::path beside = file.string() + "." + std::to_string(::getpid()) + ".tmp";
  errno = 0;
  std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream || std::rename(beside.c_str(), file.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    fs::remove(beside, ignored);
    throw Error("Cannot write " + file.string() + ": " + reason + ".");
  }
}

void append_to_file(const fs::path& file, std::string_view text) {
  std::error_code ignored;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), ignored);
  const int end = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = ::write(end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string reason = std::strerror(errno);
  if (end >= 0) ::close(end);
  if (!written) throw Error("Cannot write " + file.string() + ": " + reason + ".");
}

bool write_in_place(const fs::path& file, std::string_view text) {
  std::ofstream stream(file);
  stream << text;
  stream.close();
  return !stream.fail();
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

TemporaryFolder::TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  std::string pattern = std::string(folder && *folder ? folder : "/tmp") + "/worldsize.XXXXXX";
  if (!::mkdtemp(pattern.data())) {
    throw Error("Cannot make a folder " + pattern + ": " + std::strerror(errno) +
                ". Fix: set TMPDIR to a folder that you may write to.");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace checker
