#pragma once
/// Tests whose body runs as several ranks: real processes, because generators and the default group
/// are per process.
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace ranks {

/// A folder of its own for the running test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Options {
  /// Extra environment of each rank; "{rank}" and "{folder}" in values are replaced.
  std::map<std::string, std::string> environment = {};
  /// How each rank is expected to end.
  int exit_code = 0;
};

/// In the test itself: starts `world_size` copies of this program that run this test only, as ranks
/// that find each other through a file, waits for all, and expects each to succeed. In such a copy:
/// runs `body`. Call it once in a test, and let the test do nothing else around it.
void run(int world_size, const std::function<void()>& body, const Options& options = {});

/// True in a copy. What tests check about all ranks together they check where this is false.
bool is_rank();

/// Returns once `world_size` ranks have called it; needs no process group. Once per test.
void meet(int world_size);

/// A folder that all ranks of the test see (only inside body).
std::filesystem::path shared_folder();

}  // namespace ranks
