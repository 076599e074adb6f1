// Exercise C8: Wait for each other.

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

namespace fs = std::filesystem;

// Rank 0 comes here after it has written, and its number reaches the others only then.
int64_t announce_size(const fs::path& file, int rank) {
  auto size = torch::zeros({}, torch::kLong);
  if (rank == 0) size.fill_(static_cast<int64_t>(fs::file_size(file)));
  auto news = broadcast_async(size, 0);
  news.wait();
  return size.item<int64_t>();
}

}  // namespace

int main() try {
  const int rank = setup({.device = torch::kCPU}).rank;
  const fs::path file = "numbers.txt";
  if (rank == 0) write_numbers(file, my_numbers(4));

  const int64_t size = announce_size(file, rank);
  if (static_cast<int64_t>(fs::file_size(file)) != size) {
    throw tasks::Error(file.string() + " is not whole on this rank.");
  }
  show("numbers", read_numbers(file));
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
