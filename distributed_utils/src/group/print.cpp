#include "distributed_utils/print.hpp"

#include <cstdio>

#include "distributed_utils/observer.hpp"

namespace distributed_utils::detail {

bool prints_here() {
  const bool prints = get_rank() == 0;
  if (Observer* const watching = observer()) watching->print0_called(prints);
  return prints;
}

void print_line(std::string_view text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace distributed_utils::detail
