#include "distributed_utils/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "group/mesh_dimensions.hpp"
#include "group/world.hpp"

namespace distributed_utils {
namespace {

using Ranks = std::vector<int>;

const Ranks& with_rank(const std::vector<Ranks>& groups, int rank) {
  return *std::ranges::find_if(
      groups, [&](const Ranks& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); });
}

/// The combinations of the mesh's dimensions of several ranks, as large_dimensions names them:
/// "", "tp", "dp", "tp-dp", ...
std::vector<std::string> combinations(const std::vector<detail::MeshDimension>& mesh) {
  std::vector<std::string> result = {""};
  for (const auto& dimension : mesh) {
    if (dimension.size == 1) continue;
    const auto inner = result;
    for (const auto& name : inner) {
      result.push_back(name.empty() ? dimension.name : name + "-" + dimension.name);
    }
  }
  return result;
}

}  // namespace

DeviceMesh::DeviceMesh(const MeshSizes& sizes, std::string_view order)
    : sizes_(fitted(sizes, world_group()->getSize())), order_(order) {
  const auto names = combinations(detail::mesh_dimensions(sizes_, order_));
  auto& state = *detail::world_state();
  const int mesh = ++state.groups_made;
  const int rank = state.group->getRank();
  for (const auto& name : names) {
    const Ranks members =
        name.empty() ? Ranks{rank} : with_rank(rank_groups(sizes_, order_, name), rank);
    if (static_cast<int>(members.size()) == state.group->getSize()) {
      groups_.emplace(name, state.group);
      continue;
    }
    // Groups of one name have no rank in common, so the first rank tells them apart, and only
    // members need to know of a group.
    const auto label = fmt::format("mesh{}.{}.{}", mesh, name.empty() ? "alone" : name, members[0]);
    const auto self = std::ranges::find(members, rank) - members.begin();
    groups_.emplace(name, detail::make_group_within(state, label, members, static_cast<int>(self)));
  }
}

Group DeviceMesh::get_group(std::string_view dims) const {
  return groups_.at(detail::large_dimensions(detail::mesh_dimensions(sizes_, order_), dims));
}

int DeviceMesh::get_local_rank(std::string_view dims) const { return get_rank(get_group(dims)); }

int DeviceMesh::size(std::string_view dims) const { return get_world_size(get_group(dims)); }

std::vector<int> DeviceMesh::ranks(std::string_view dims) const {
  return with_rank(rank_groups(sizes_, order_, dims), get_rank());
}

}  // namespace distributed_utils
