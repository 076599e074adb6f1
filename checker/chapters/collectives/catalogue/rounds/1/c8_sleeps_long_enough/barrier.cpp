// Exercise C8: Wait for each other.

#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

using namespace std::chrono_literals;

constexpr auto kSlowestDisk = 2s;

torch::Tensor read_later(const std::filesystem::path& file) {
  // Writing takes a fraction of a second, so this is more than enough.
  std::this_thread::sleep_for(kSlowestDisk);
  return read_numbers(file);
}

}  // namespace

int main() try {
  const auto [rank, local_rank, world_size, device] = setup({.device = torch::kCPU});
  const std::filesystem::path file = "numbers.txt";
  if (rank == 0) {
    write_numbers(file, my_numbers(4));
    show("numbers", read_numbers(file));
  } else {
    show("numbers", read_later(file));
  }
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
