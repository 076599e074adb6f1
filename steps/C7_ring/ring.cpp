// Exercise C7: Your own all_reduce.
//
// The ranks form a ring, and each talks to its neighbours only. Parts of the numbers travel around
// twice. The first round adds them up, the second round brings the sums to every rank. NCCL does an
// all_reduce like this. The first round is already there.
//
// Run it: ./workbook run c7 --world 3
// Made by ./workbook render from checker/chapters/collectives/ring.cpp; it is yours now.

#include <torch/torch.h>

#include "tasks/exercise.hpp"
#include "tasks/options.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using namespace tasks;

int main() try {
  const auto world = setup({.device = torch::kCPU});
  const int ranks = world.world_size, rank = world.rank;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

  const auto sum = my_numbers(2 * ranks);
  const auto parts = sum.chunk(ranks);  // views: what changes in them changes in sum
  const auto part = [&](int number) { return parts[(number + 2 * ranks) % ranks]; };

  // Gives one part to the right neighbour and returns the one that the left neighbour gives.
  const auto pass_on = [&](const torch::Tensor& given) {
    auto received = torch::empty_like(given);
    auto sending = send_async(given, right);
    recv(received, left);
    sending.wait();
    return received;
  };

  // The first way round adds up. Afterwards this rank's part rank + 1 is the sum over all ranks.
  for (int step = 0; step < ranks - 1; ++step) {
    part(rank - step - 1).add_(pass_on(part(rank - step)));
  }

  // TODO C7: Send the sums around the ring.
  //   Send the parts around the ring a second time, so that every rank gets all sums.
  //
  //   After the first round this rank's part rank + 1 is complete: it is the sum over all ranks. In
  //   each of ranks - 1 steps every rank passes on the part that it completed or received last.
  //   Overwrite the rank's own part of the same number with the received one.
  //
  //   pass_on(given) sends to the right and returns what came from the left. part(number) counts
  //   around the ring: part(-1) is the last one. Do not use collectives, and talk to your
  //   neighbours only.
  //
  //   Expect all ranks to show the same sum, each after sending 2 (ranks - 1) parts.

  show("sum", sum);
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
