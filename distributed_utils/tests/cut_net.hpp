#pragma once
/// A model of which each rank holds a part, as a sharded one would.
#include <torch/torch.h>

#include <string>
#include <vector>

#include "distributed_utils/placement.hpp"

/// Values that depend on nothing but the name and a number.
inline torch::Tensor global_values(const std::string& name, int number,
                                   const std::vector<int64_t>& shape) {
  auto generator = at::detail::createCPUGenerator(std::hash<std::string>()(name) % 1000 + number);
  return torch::randn(shape, generator, torch::kDouble);
}

/// "weight" and "short", of which each rank holds a chunk of `cut`'s slices (of "short" perhaps
/// none), "bias", which all hold, and "last", which the last rank alone has.
struct CutNet : torch::nn::Module, distributed_utils::Placed {
  CutNet(int rank, int world_size, int64_t cut = 0) {
    for (const auto& [name, shape] :
         {std::pair<std::string, std::vector<int64_t>>{"weight", {7, 5}}, {"short", {2, 3}}}) {
      const int64_t chunk = (shape[cut] + world_size - 1) / world_size;
      const int64_t begin = std::min(rank * chunk, shape[cut]);
      std::vector<int64_t> offset(2, 0);
      offset[cut] = begin;
      add(name, shape, offset,
          global_values(name, 0, shape).narrow(cut, begin, std::min(chunk, shape[cut] - begin)),
          /*replicated=*/false);
    }
    add("bias", {5}, {0}, global_values("bias", 0, {5}), /*replicated=*/true);
    if (rank == world_size - 1) {
      add("last", {3}, {0}, global_values("last", 0, {3}), /*replicated=*/false);
    }
  }

  void add(const std::string& name, const std::vector<int64_t>& shape,
           const std::vector<int64_t>& offset, const torch::Tensor& values, bool replicated) {
    pieces.push_back({.name = "layer." + name,
                      .tensor = register_parameter(name, values.clone()),
                      .global_shape = shape,
                      .offset = offset,
                      .replicated = replicated});
  }

  std::vector<distributed_utils::Placement> placements() const override { return pieces; }

  /// This rank's part of a global tensor that is cut as a piece is.
  static torch::Tensor part(const torch::Tensor& whole, const distributed_utils::Placement& piece) {
    auto result = whole;
    for (int64_t i = 0; i < whole.dim(); ++i) {
      result = result.narrow(i, piece.offset[i], piece.tensor.size(i));
    }
    return result;
  }

  /// One step of an optimizer, whose gradients are parts of global ones.
  void train_step(torch::optim::Optimizer& optimizer, int step) {
    for (auto& piece : pieces) {
      piece.tensor.mutable_grad() =
          part(global_values(piece.name, step, piece.global_shape), piece).clone();
    }
    optimizer.step();
  }

  std::vector<distributed_utils::Placement> pieces;
};
