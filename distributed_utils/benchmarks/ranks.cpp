#include "ranks.hpp"

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <torch/cuda.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ranks {
namespace {

void set_environment(int rank, int world_size, int nodes, const std::string& store) {
  // NCCL takes ranks of different names for those of different hosts.
  if (nodes > 1) {
    setenv("NCCL_HOSTID", ("node" + std::to_string(rank * nodes / world_size)).c_str(), 1);
  }
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", std::to_string(world_size).c_str(), 1);
  setenv("INIT_METHOD", ("file://" + store).c_str(), 1);
}

class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& /*runs*/) override {}
};

}  // namespace

void wait_for(c10::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

Setting take_setting(int& argc, char** argv, int ranks) {
  Setting setting{.ranks = ranks};
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--device=cuda") {
      setting.device = c10::kCUDA;
    } else if (argument.starts_with("--ranks=")) {
      setting.ranks = std::atoi(argv[i] + 8);
    } else if (argument != "--device=cpu") {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  argv[argc] = nullptr;
  if (setting.ranks < 1 || setting.ranks > 64) {
    std::fprintf(stderr, "--ranks must be between 1 and 64.\n");
    std::exit(1);
  }
  return setting;
}

int start(int world_size, char** argv, int nodes) {
  if (std::getenv("RANK")) return -1;
  std::string folder = (std::filesystem::temp_directory_path() / "ranks-XXXXXX").string();
  if (!mkdtemp(folder.data())) {
    std::perror("mkdtemp");
    return 1;
  }
  std::vector<pid_t> children;
  for (int rank = 0; rank < world_size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      set_environment(rank, world_size, nodes, folder + "/store");
      execv("/proc/self/exe", argv);
      std::perror("execv");
      _exit(127);
    }
    if (child > 0) children.push_back(child);
  }
  int failed = children.size() < static_cast<size_t>(world_size) ? 1 : 0;
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (status == 0) continue;
    failed = 1;
    for (const pid_t child : children) {  // those left would wait for the dead one
      if (child != ended) kill(child, SIGTERM);
    }
  }
  std::filesystem::remove_all(folder);
  return failed;
}

void run_benchmarks(int rank) {
  Silent silent;
  benchmark::RunSpecifiedBenchmarks(rank == 0 ? nullptr : &silent);
}

}  // namespace ranks
