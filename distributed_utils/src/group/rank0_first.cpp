#include "distributed_utils/rank0_first.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "distributed_utils/launch.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

/// "<local rank> <host>", which no two ranks of one node share.
std::string place() {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{} {}", read_launch().local_rank, host.data());
}

/// Whether the group's rank `rank` is the first on its node. A place that has been seen already is
/// on another node of that host name: places fill node after node.
bool is_first_of_node(const std::vector<std::string>& places, size_t rank) {
  std::map<std::string, int> times_seen;
  std::set<std::pair<std::string, int>> nodes;
  bool is_first = false;
  for (size_t i = 0; i <= rank; ++i) {
    const int which = times_seen[places[i]]++;
    const std::string host = places[i].substr(places[i].find(' ') + 1);
    is_first = nodes.emplace(host, which).second;
  }
  return is_first;
}

}  // namespace

void detail::do_on_first_ranks_first(const std::function<void()>& work, const Group& group) {
  const auto places = together(group, place);
  const bool is_first = is_first_of_node(places, static_cast<size_t>(get_rank(group)));
  for (const bool turn_of_first : {true, false}) {
    together(group, [&] {
      if (is_first == turn_of_first) work();
      return std::string();
    });
  }
}

}  // namespace distributed_utils
