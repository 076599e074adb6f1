// Exercise C9: A deadlock: two orders.

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

namespace {

struct Job {
  std::string name;
  std::function<Work()> begin;
};

void do_all(std::vector<Job> jobs) {
  std::ranges::sort(jobs, std::greater<>(), &Job::name);
  std::vector<Work> works;
  for (const auto& job : jobs) {
    print0("begins: {}", job.name);
    works.push_back(job.begin());
  }
  for (auto& work : works) work.wait();
}

}  // namespace

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const auto sum = my_numbers(4), first = sum.clone();
  std::vector<Job> jobs = {{"sum", [&] { return all_reduce_async(sum); }},
                           {"first", [&] { return broadcast_async(first, 0); }}};
  if (world.rank == 0) std::ranges::reverse(jobs);
  do_all(std::move(jobs));

  show("numbers of rank 0", first);
  if (world.rank == 0) show("sum", sum);
  destroy_process_group();
  return 0;

} catch (const std::exception& error) {
  return tasks::report(error);
}
