#include "checkpoint/pieces.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>

namespace distributed_utils::detail {
namespace {

bool is_empty_part(const Placement& piece) {
  const auto whole = std::accumulate(piece.global_shape.begin(), piece.global_shape.end(),
                                     int64_t{1}, std::multiplies<>());
  return piece.tensor.numel() == 0 && whole > 0;
}

}  // namespace

std::vector<Placement> whole_placements(const StateDict& tensors) {
  std::vector<Placement> result;
  for (const auto& [name, tensor] : tensors) {
    result.push_back({.name = name,
                      .tensor = tensor,
                      .global_shape = tensor.sizes().vec(),
                      .offset = std::vector<int64_t>(tensor.dim(), 0)});
  }
  return result;
}

at::Tensor part_of(const at::Tensor& tensor, at::IntArrayRef offset, at::IntArrayRef shape) {
  at::Tensor part = tensor;
  for (size_t i = 0; i < shape.size(); ++i) {
    part = part.narrow(static_cast<int64_t>(i), offset[i], shape[i]);
  }
  return part;
}

std::string describe(const Placement& piece) {
  return fmt::format("{} [{}] [{}]", piece.name, fmt::join(piece.offset, ", "),
                     fmt::join(piece.tensor.sizes(), ", "));
}

std::vector<Placement> pieces_to_write(const std::vector<Placement>& pieces, int rank,
                                       const std::vector<std::vector<std::string>>& all) {
  std::unordered_set<std::string> written;
  for (int lower = 0; lower < rank; ++lower) written.insert(all[lower].begin(), all[lower].end());
  std::vector<Placement> result;
  for (const auto& piece : pieces) {
    const bool others = piece.replicated ? rank != 0 : written.contains(describe(piece));
    if (!others && !is_empty_part(piece)) result.push_back(piece);
  }
  return result;
}

}  // namespace distributed_utils::detail
