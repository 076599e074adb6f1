#pragma once
/// Pieces of global tensors, as checkpoints hold them.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "distributed_utils/placement.hpp"
#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils::detail {

/// Of all that optimizer_state_dict gives: a value of its parameter's shape lies where the
/// parameter lies.
std::vector<Placement> optimizer_placements(const torch::optim::Optimizer& optimizer,
                                            const torch::nn::Module& model);

/// Of tensors that are whole.
std::vector<Placement> whole_placements(const StateDict& tensors);

/// A box of a tensor, as a view.
at::Tensor part_of(const at::Tensor& tensor, at::IntArrayRef offset, at::IntArrayRef shape);

/// The names of what all ranks of the group hold. Every rank calls it.
std::set<std::string> names_of_all_ranks(const Group& group, const std::vector<Placement>& pieces);

/// Throws Error, naming the file or folder `path`, unless the whole tensor that a piece belongs to
/// has this shape.
void check_global_shape(const Placement& piece, at::IntArrayRef shape,
                        const std::filesystem::path& path);

/// Says which piece it is: the same text for the same piece on any rank.
std::string describe(const Placement& piece);

/// What this rank has to write of what all ranks hold, whose descriptions, rank by rank, are in
/// `all`. Rank 0 writes what is replicated. Of other pieces that several ranks hold alike, the
/// lowest of them writes. Nobody writes a piece without elements of a tensor that has some.
std::vector<Placement> pieces_to_write(const std::vector<Placement>& pieces, int rank,
                                       const std::vector<std::vector<std::string>>& all);

}  // namespace distributed_utils::detail
