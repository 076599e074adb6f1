#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "distributed_utils/error.hpp"
#include "distributed_utils/mesh.hpp"
#include "group/mesh_dimensions.hpp"

namespace distributed_utils {
namespace {

using detail::MeshDimension;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('-', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// The names in a text such as "dp-cp". Throws Error; `what` says where the text comes from.
std::vector<std::string> names_in(std::string_view text, const char* what) {
  const auto names = split(text);
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(detail::kMeshNames, names[i]) == detail::kMeshNames.end()) {
      throw Error(
          fmt::format("mesh: the {} '{}' names the dimension '{}', which is unknown. Fix: use {}, "
                      "joined by '-'.",
                      what, text, names[i], fmt::join(detail::kMeshNames, ", ")));
    }
    if (std::find(names.begin(), names.begin() + static_cast<int64_t>(i), names[i]) !=
        names.begin() + static_cast<int64_t>(i)) {
      throw Error(fmt::format("mesh: the {} '{}' names '{}' twice. Fix: name it once.", what, text,
                              names[i]));
    }
  }
  return names;
}

int size_of(const MeshSizes& sizes, std::string_view name) {
  if (name == "tp") return sizes.tp;
  if (name == "cp") return sizes.cp;
  return name == "dp" ? sizes.dp : sizes.pp;
}

/// "tp 2 x cp 1 x pp 2 x dp 4"; without dp while nobody has said how many.
std::string describe(const MeshSizes& sizes) {
  const auto text = fmt::format("tp {} x cp {} x pp {}", sizes.tp, sizes.cp, sizes.pp);
  return sizes.dp == 0 ? text : fmt::format("{} x dp {}", text, sizes.dp);
}

void check_sizes(const MeshSizes& sizes, int least_dp) {
  if (sizes.tp >= 1 && sizes.cp >= 1 && sizes.pp >= 1 && sizes.dp >= least_dp) return;
  throw Error(fmt::format("mesh: tp {}, cp {}, pp {}, dp {}: every size must be at least 1{}.",
                          sizes.tp, sizes.cp, sizes.pp, sizes.dp,
                          least_dp == 0 ? "; dp may be 0, for the rest of the world" : ""));
}

/// How far apart neighbours along each of the dimensions are, if these are all that there are.
std::vector<int> strides_of(const std::vector<MeshDimension>& dimensions) {
  std::vector<int> strides;
  int stride = 1;
  for (const auto& dimension : dimensions) {
    strides.push_back(stride);
    stride *= dimension.size;
  }
  return strides;
}

}  // namespace

std::vector<MeshDimension> detail::mesh_dimensions(const MeshSizes& sizes, std::string_view order) {
  check_sizes(sizes, 1);
  std::vector<MeshDimension> result;
  for (const auto& name : names_in(order, "order")) result.push_back({name, size_of(sizes, name)});
  for (const char* name : kMeshNames) {
    if (std::ranges::find(result, name, &MeshDimension::name) != result.end()) continue;
    if (size_of(sizes, name) != 1) {
      throw Error(
          fmt::format("mesh: the order '{}' leaves out {}, which has size {}. Fix: add it, as in "
                      "'tp-cp-dp-pp'.",
                      order, name, size_of(sizes, name)));
    }
    result.push_back({name, 1});
  }
  return result;
}

std::string detail::large_dimensions(const std::vector<MeshDimension>& mesh,
                                     std::string_view dims) {
  const auto asked = names_in(dims, "group");
  std::vector<std::string> large;
  for (const auto& dimension : mesh) {
    const bool wanted = std::ranges::find(asked, dimension.name) != asked.end();
    if (wanted && dimension.size > 1) large.push_back(dimension.name);
  }
  return fmt::format("{}", fmt::join(large, "-"));
}

MeshSizes fitted(const MeshSizes& sizes, int world_size) {
  check_sizes(sizes, 0);
  const int64_t others = int64_t{sizes.tp} * sizes.cp * sizes.pp;
  if (sizes.dp == 0 && world_size % others == 0) {
    MeshSizes result = sizes;
    result.dp = static_cast<int>(world_size / others);
    return result;
  }
  if (sizes.dp != 0 && others * sizes.dp == world_size) return sizes;
  throw Error(
      fmt::format("mesh: {} ranks cannot be arranged as {}, which takes {}{}. Fix: start a number "
                  "of ranks that "
                  "fits, or choose other sizes.",
                  world_size, describe(sizes), sizes.dp == 0 ? "a multiple of " : "",
                  others * std::max(sizes.dp, 1)));
}

std::vector<std::vector<int>> rank_groups(const MeshSizes& sizes, std::string_view order,
                                          std::string_view dims) {
  const auto mesh = detail::mesh_dimensions(sizes, order);
  const auto asked = names_in(dims, "group");
  // Strides count in the whole mesh. Then the dimensions are dealt out: those along which a group
  // runs, and those in which its ranks agree.
  const auto strides = strides_of(mesh);
  std::vector<std::pair<int, int>> along, across;  // size, stride
  for (size_t i = 0; i < mesh.size(); ++i) {
    const bool inside = std::ranges::find(asked, mesh[i].name) != asked.end();
    (inside ? along : across).emplace_back(mesh[i].size, strides[i]);
  }
  // The innermost counts first, as in Megatron: so groups come in the order of their first ranks.
  const auto offsets = [](const std::vector<std::pair<int, int>>& dimensions) {
    std::vector<int> result = {0};
    for (const auto& [size, stride] : dimensions) {
      const auto inner = result;
      for (int i = 1; i < size; ++i) {
        for (const int offset : inner) result.push_back(offset + i * stride);
      }
    }
    return result;
  };
  std::vector<std::vector<int>> groups;
  for (const int first : offsets(across)) {
    auto& group = groups.emplace_back(offsets(along));
    for (int& rank : group) rank += first;
  }
  return groups;
}

}  // namespace distributed_utils
