#include "distributed_utils/print.hpp"

#include <cstdio>

namespace distributed_utils::detail {

void print_line(std::string_view text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace distributed_utils::detail
