//@header
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// Adds this rank's number to those of the ranks in its group.
int64_t sum_in(const std::vector<std::vector<int>>& groups, int64_t number) {
  int64_t sum = number;
  for (const auto& ranks : groups) {
    const auto group = new_group(ranks);
    if (!group) continue;
    const auto total = torch::tensor({number});
    all_reduce(total, ReduceOp::SUM, *group);  //@reduce
    sum = total.item<int64_t>();
  }
  return sum;
}

int main(int /*count*/, char** words) {
  const auto setup_of_this = setup();
  const int64_t number = std::stoll(words[1]) + setup_of_this.rank;
  int64_t row = number, column = number;
  //@todo 901
#if ROWS
  row = sum_in({{0, 1}, {2, 3}}, number);  //@rows
#endif
  //@todo 902
#if COLUMNS
  column = sum_in({{0, 2}, {1, 3}}, number);  //@columns
#endif
  fmt::println("row {}, column {}", row, column);  //@print
  destroy_process_group();  //@destroy
  return 0;
}
