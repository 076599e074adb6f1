#pragma once
/// DeviceMesh arranges the ranks along named dimensions: "tp" (tensor), "cp" (context), "dp" (data)
/// and "pp" (pipeline). Each kind of parallelism gets its own groups of ranks.
///
/// Megatron's arrangement (Megatron-LM, megatron/core/parallel_state.py, class RankGenerator and
/// generate_masked_orthogonal_rank_groups): `order` names the dimensions from the innermost to the
/// outermost. The ranks of a group of the first dimension are neighbours, so "tp-cp-dp-pp" keeps
/// tensor groups within a node and lets pipelines span nodes.
///
/// With 8 ranks, {.tp = 2, .pp = 2} and the default order, dp is 2, and rank 5 is in
///   tp     [4, 5]         pp     [1, 5]
///   dp     [5, 7]         tp-pp  [0, 1, 4, 5]
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Ranks along each dimension.
struct MeshSizes {
  int tp = 1;
  int cp = 1;
  int pp = 1;
  int dp = 0;  ///< 0: as many as the rest of the world allows
};

/// The same with dp filled in. Throws Error if a size is less than 1 (dp: than 0), or if the sizes
/// do not multiply to world_size.
MeshSizes fitted(const MeshSizes& sizes, int world_size);

/// The ranks of every group along `dims`, one dimension ("dp") or several ("dp-cp", the same as
/// "cp-dp"). Each rank is in one group; a group's ranks rise. dp must be given. Throws Error for a
/// dimension that is unknown or named twice, and for one of several ranks that `order` leaves out.
std::vector<std::vector<int>> rank_groups(const MeshSizes& sizes, std::string_view order,
                                          std::string_view dims);

/// The world as a mesh, and this rank's place in it. `dims` means the same as in rank_groups, and
/// causes the same Errors.
class DeviceMesh {
 public:
  /// Every rank of the world must call it, with the same arguments and in the same order relative
  /// to other calls that make groups. It makes the groups of all combinations of dimensions. Groups
  /// of a single rank or of all ranks need no extra connections: the mesh shares one group of this
  /// rank, and the world's group. destroy_process_group() shuts all of them down. Throws Error
  /// before setup(), as fitted() does and as rank_groups() does.
  explicit DeviceMesh(const MeshSizes& sizes, std::string_view order = "tp-cp-dp-pp");

  /// This rank's group along dims.
  Group get_group(std::string_view dims) const;

  /// This rank's number in that group, from 0: its coordinate, if dims is one dimension.
  int get_local_rank(std::string_view dims) const;

  /// Ranks in that group.
  int size(std::string_view dims) const;

  /// Its members, as ranks of the world.
  std::vector<int> ranks(std::string_view dims) const;

  const MeshSizes& sizes() const { return sizes_; }

 private:
  MeshSizes sizes_;
  std::string order_;
  std::unordered_map<std::string, Group> groups_;  // by the dimensions of several ranks
};

}  // namespace distributed_utils
