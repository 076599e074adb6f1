#include "distributed_utils/print.hpp"

#include <cstdio>

#include "distributed_utils/recording.hpp"

namespace distributed_utils::detail {

bool prints_here() {
  const bool prints = get_rank() == 0;
  if (recording::enabled()) recording::record_number(recording::Kind::printed, prints ? 1 : 0);
  return prints;
}

void print_line(std::string_view text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace distributed_utils::detail
