#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "distributed_utils/mesh.hpp"

namespace distributed_utils::detail {

inline constexpr std::array<const char*, 4> kMeshNames = {"tp", "cp", "dp", "pp"};

struct MeshDimension {
  std::string name;
  int size;
};

/// The dimensions from the innermost to the outermost; those that `order` leaves out come last.
/// Throws Error as rank_groups does.
std::vector<MeshDimension> mesh_dimensions(const MeshSizes& sizes, std::string_view order);

/// What of `dims` has several ranks, in the mesh's order: the same for all names of one group.
/// Throws Error as rank_groups does.
std::string large_dimensions(const std::vector<MeshDimension>& mesh, std::string_view dims);

}  // namespace distributed_utils::detail
