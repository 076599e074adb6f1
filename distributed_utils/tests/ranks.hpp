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

/// Forks this process into `world_size` ranks that run `body` and find each other through a file.
/// Waits for all of them and expects each to succeed. Call it before the test has used torch, whose
/// threads a fork would lose.
void run(int world_size, const std::function<void()>& body, const Options& options = {});

/// The GPUs of this machine, counted without CUDA, which works in no fork of a process that has
/// asked it anything.
int gpus();

/// True in a rank. What tests check about all ranks together they check where this is false.
bool is_rank();

/// Returns once `world_size` ranks have called it; needs no process group. Once per test.
void meet(int world_size);

/// A folder that all ranks of the test see (only inside body).
std::filesystem::path shared_folder();

}  // namespace ranks
