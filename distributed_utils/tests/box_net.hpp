#pragma once
/// A model of which each rank holds boxes: FSDP cuts rows, tensor parallelism columns too.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cut_net.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/placement.hpp"
#include "distributed_utils/save.hpp"

/// Ranks in rows and columns: rank 5 of 3 x 2 is in row 2 and column 1.
struct Grid {
  int rows = 1, columns = 1;
  int ranks() const { return rows * columns; }
};

/// A dimension of a tensor in equal chunks, of which the last may be smaller and some empty.
struct Chunk {
  Chunk(int64_t whole, int part, int parts) {
    const int64_t most = (whole + parts - 1) / parts;
    begin = std::min(part * most, whole);
    size = std::min(most, whole - begin);
  }
  int64_t begin, size;
};

/// "weight" and "cube", cut by rows and columns, "short", of which ranks may hold nothing, "bias",
/// which ranks of a row hold alike, "scale" and the buffer "count", which all hold, and "last",
/// which the last rank alone has. All depends on nothing but the names.
struct BoxNet : torch::nn::Module, distributed_utils::Placed {
  BoxNet(int rank, const Grid& grid) {
    const int row = rank / grid.columns, column = rank % grid.columns;
    const auto cut = [&](const std::string& name, const std::vector<int64_t>& shape,
                         int64_t column_dimension) {
      std::vector<int64_t> offset(shape.size(), 0), size = shape;
      const auto take = [&](int64_t dimension, const Chunk& chunk) {
        offset[dimension] = chunk.begin;
        size[dimension] = chunk.size;
      };
      take(0, Chunk(shape[0], row, grid.rows));
      if (column_dimension > 0) {
        take(column_dimension, Chunk(shape[column_dimension], column, grid.columns));
      }
      add(name, shape, offset, size, /*replicated=*/false);
    };
    cut("weight", {13, 6}, 1);
    cut("cube", {5, 3, 7}, 2);
    cut("short", {2, 3}, 1);
    cut("bias", {7}, 0);
    add("scale", {4}, {0}, {4}, /*replicated=*/true);
    if (rank == grid.ranks() - 1) add("last", {3}, {0}, {3}, /*replicated=*/false);
    pieces.push_back({.name = "box.count",
                      .tensor = register_buffer("count", torch::tensor(int64_t{17})),
                      .global_shape = {},
                      .offset = {},
                      .replicated = true});
  }

  void add(const std::string& name, const std::vector<int64_t>& shape,
           const std::vector<int64_t>& offset, const std::vector<int64_t>& size, bool replicated) {
    distributed_utils::Placement piece = {.name = "box." + name,
                                          .tensor = torch::empty(size, torch::kDouble),
                                          .global_shape = shape,
                                          .offset = offset,
                                          .replicated = replicated};
    piece.tensor =
        register_parameter(name, CutNet::part(global_values(piece.name, 0, shape), piece).clone());
    pieces.push_back(piece);
  }

  std::vector<distributed_utils::Placement> placements() const override { return pieces; }

  /// One step of an optimizer, whose gradients are parts of global ones.
  void train_step(torch::optim::Optimizer& optimizer, int step) {
    for (auto& piece : pieces) {
      if (!piece.tensor.requires_grad()) continue;
      piece.tensor.mutable_grad() =
          CutNet::part(global_values(piece.name, step, piece.global_shape), piece).clone();
    }
    optimizer.step();
    pieces.back().tensor.fill_(step);
  }

  std::vector<distributed_utils::Placement> pieces;
};

/// A BoxNet and its optimizer.
struct BoxRun {
  BoxRun(int rank, const Grid& grid) : net(rank, grid), optimizer(net.parameters(), 0.01) {}
  void train(int first, int last) {
    for (int step = first; step < last; ++step) net.train_step(optimizer, step + 1);
  }

  /// It is, to the bit, this rank's part of what one rank alone has made.
  void expect_part_of(const BoxRun& serial) const {
    using namespace distributed_utils;
    const auto state = optimizer_state_dict(optimizer, net);
    const auto whole_state = optimizer_state_dict(serial.optimizer, serial.net);
    const auto whole = state_dict(serial.net);
    for (const auto& piece : net.pieces) {
      EXPECT_TRUE(torch::equal(piece.tensor, CutNet::part(whole.at(piece.name), piece)))
          << piece.name;
      if (!piece.tensor.requires_grad()) continue;
      for (const std::string field : {"exp_avg.", "exp_avg_sq."}) {
        EXPECT_TRUE(torch::equal(state.at(field + piece.name),
                                 CutNet::part(whole_state.at(field + piece.name), piece)))
            << field << piece.name;
      }
    }
    EXPECT_TRUE(torch::equal(state.at("step.box.scale"), whole_state.at("step.box.scale")));
  }

  BoxNet net;
  torch::optim::AdamW optimizer;
};
