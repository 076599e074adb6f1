#include "ranks.hpp"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ranks {
namespace {

// What a rank may take. Nothing here does for long; a hang must not hold up the suite.
constexpr auto kLimit = std::chrono::seconds(120);

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Rank {
  pid_t pid;
  std::filesystem::path output;
};

void set_environment(int rank, int world_size, const std::filesystem::path& folder,
                     const Options& options) {
  for (const char* launcher :
       {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    unsetenv(launcher);
  }
  const auto set = [](const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
  };
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, std::to_string(rank));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, std::to_string(world_size));
  set("INIT_METHOD", "file://" + (folder / "store").string());
  set("OMP_NUM_THREADS", "1");
  set("RANKS_FOLDER", folder.string());
  for (const auto& [name, value] : options.environment) {
    set(name,
        replaced(replaced(value, "{rank}", std::to_string(rank)), "{folder}", folder.string()));
  }
}

// Leaves out the destructors of libraries: LibTorch's take a tenth of a second. What a rank itself
// has registered for its end comes before this.
void leave(int status, void* /*nothing*/) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

// What a rank does, to its end.
[[noreturn]] void become_rank(const std::function<void()>& body,
                              const std::filesystem::path& output) {
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  close(file);
  on_exit(leave, nullptr);
  at::set_num_threads(1);  // The parent's threads are not here.
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "exception: " << error.what();
  }
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

// A rank is forked, not started again: loading torch takes a third of a second.
Rank start(int rank, int world_size, const std::filesystem::path& folder,
           const std::function<void()>& body, const Options& options) {
  Rank result = {.pid = 0, .output = folder / ("output." + std::to_string(rank))};
  std::fflush(nullptr);
  result.pid = fork();
  if (result.pid == 0) {
    set_environment(rank, world_size, folder, options);
    become_rank(body, result.output);
  }
  if (result.pid < 0) ADD_FAILURE() << "could not start a rank: " << strerror(errno);
  return result;
}

/// The wait status, or nothing if the rank outlived the limit and was killed.
std::optional<int> wait_for(pid_t pid, std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

std::string describe(const std::optional<int>& status) {
  if (!status) return "did not end in time";
  if (WIFSIGNALED(*status)) return "ended by signal " + std::to_string(WTERMSIG(*status));
  return "exited with " + std::to_string(WEXITSTATUS(*status));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "ranks.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int gpus() {
  int count = 0;
  while (std::filesystem::exists("/dev/nvidia" + std::to_string(count))) ++count;
  return count;
}

bool is_rank() { return std::getenv("RANKS_FOLDER") != nullptr; }

std::filesystem::path shared_folder() { return std::getenv("RANKS_FOLDER"); }

void meet(int world_size) {
  const auto name = [](int rank) { return shared_folder() / ("met." + std::to_string(rank)); };
  std::ofstream(name(std::atoi(std::getenv("RANK")))).flush();
  for (int rank = 0; rank < world_size; ++rank) {
    while (!std::filesystem::exists(name(rank))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

void run(int world_size, const std::function<void()>& body, const Options& options) {
  if (is_rank()) {
    body();
    return;
  }
  const TemporaryFolder folder;
  std::vector<Rank> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(start(rank, world_size, folder.path(), body, options));
  }
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto status = wait_for(ranks[rank].pid, deadline);
    const bool as_expected =
        status && WIFEXITED(*status) && WEXITSTATUS(*status) == options.exit_code;
    EXPECT_TRUE(as_expected) << "rank " << rank << " " << describe(status) << ", wanted exit "
                             << options.exit_code << "; it said:\n"
                             << content(ranks[rank].output);
  }
}

}  // namespace ranks
