#pragma once
/// A model of Blocks in the shapes that sharding finds hard, and a twin that one process trains.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "distributed_utils/block.hpp"
#include "distributed_utils/fsdp.hpp"
#include "distributed_utils/setup.hpp"

namespace distributed_utils::fsdp {

struct NetShape {
  bool tied = false;    ///< the head's weight is the first block's
  bool frozen = false;  ///< one layer as a whole, and the first half of another
  bool unused = false;  ///< a parameter of each layer, and a block that forward never calls
  bool twice = false;   ///< forward calls the first layer again
  int64_t hidden = 7;   ///< rows that neither 2 nor 3 ranks share evenly
};

constexpr int64_t kWidth = 5;
constexpr double kClose = 1e-12;  ///< of sums in another order
constexpr int kRows = 2;          ///< of each rank and step

struct Layer : Block {
  explicit Layer(const NetShape& shape)
      : up(register_module("up", torch::nn::Linear(kWidth, shape.hidden))),
        down(register_module("down", torch::nn::Linear(shape.hidden, kWidth))) {
    if (shape.unused) spare = register_parameter("spare", torch::randn({3, 2}));
  }
  torch::Tensor forward(const torch::Tensor& input) override {
    return input + down(torch::tanh(up(input)));
  }
  torch::nn::Linear up, down;
  torch::Tensor spare;
};

struct Project : Block {
  explicit Project(const torch::Tensor& values) : weight(register_parameter("weight", values)) {}
  torch::Tensor forward(const torch::Tensor& input) override { return input.matmul(weight.t()); }
  torch::Tensor weight;
};

struct Net : torch::nn::Module {
  explicit Net(const NetShape& shape = {}, torch::Dtype type = torch::kDouble)
      : twice(shape.twice) {
    first = add("first", std::make_shared<Project>(torch::randn({kWidth, kWidth}) / 2));
    for (const char* name : {"layer0", "layer1", "layer2"}) {
      layers.push_back(add(name, std::make_shared<Layer>(shape)));
    }
    if (shape.unused) add("idle", std::make_shared<Layer>(shape));
    head = add("head", std::make_shared<Project>(shape.tied ? first->weight
                                                            : torch::randn({3, kWidth}) / 2));
    scale = register_parameter("scale", torch::ones({1}));
    shift = register_buffer("shift", torch::zeros({3}));
    if (shape.frozen) {
      for (auto& parameter : layers[1]->parameters()) parameter.requires_grad_(false);
      for (auto& parameter : layers[2]->up->parameters()) parameter.requires_grad_(false);
    }
    to(type);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor state = (*first)(input);
    for (const auto& layer : layers) {
      if (layer != layers[1] || !skips) state = (*layer)(state);
    }
    if (twice) state = (*layers[0])(state);
    return (*head)(state).narrow(1, 0, 3) * scale + shift;
  }

  template <typename B>
  std::shared_ptr<B> add(const std::string& name, std::shared_ptr<B> block) {
    units.push_back(block);
    return register_module(name, std::move(block));
  }

  bool twice, skips = false;                  ///< skips: the second layer is left out
  std::vector<std::shared_ptr<Block>> units;  ///< in the order of forward
  std::shared_ptr<Project> first, head;
  std::vector<std::shared_ptr<Layer>> layers;
  torch::Tensor scale, shift;
};

inline std::shared_ptr<Net> make_net(const NetShape& shape = {}, torch::Dtype type = torch::kDouble,
                                     int seed = 5) {
  torch::manual_seed(seed);
  return std::make_shared<Net>(shape, type);
}

/// The rows of all ranks at one step.
inline torch::Tensor global_rows(int step, int ranks) {
  auto generator = at::detail::createCPUGenerator(1000 + step);
  return torch::randn({int64_t{kRows} * ranks, kWidth}, generator, torch::kDouble);
}

inline torch::Tensor own_rows(int step, int rank, int ranks) {
  return global_rows(step, ranks).slice(0, kRows * rank, kRows * (rank + 1));
}

inline torch::Tensor loss_of(const torch::Tensor& output) {
  return torch::tanh(output - 1).pow(2).mean();
}

/// Each parameter once, though modules share one, as optimizers need it.
inline std::vector<torch::Tensor> each_once(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> result;
  for (const auto& one : parameters) {
    const auto known = [&](const torch::Tensor& other) { return other.is_same(one); };
    if (std::none_of(result.begin(), result.end(), known)) result.push_back(one);
  }
  return result;
}

/// What of a whole tensor a piece holds.
inline torch::Tensor part_of(const torch::Tensor& whole, const Placement& piece) {
  return whole.narrow(0, piece.offset[0], piece.tensor.size(0));
}

/// The model's shards and their gradients are the twin's. A gradient that the twin lacks is absent,
/// or zeros.
inline void expect_parts_of(const Placed& model, const torch::nn::Module& twin, double tolerance,
                            const std::string& when) {
  const auto whole = twin.named_parameters();
  size_t compared = 0;
  for (const auto& piece : model.placements()) {
    if (!whole.contains(piece.name)) continue;
    ++compared;
    const auto& expected = whole[piece.name];
    EXPECT_EQ(piece.global_shape, expected.sizes().vec()) << piece.name;
    EXPECT_TRUE(torch::allclose(piece.tensor, part_of(expected, piece), tolerance, tolerance))
        << piece.name << " " << when;
    const auto& gradient = piece.tensor.grad();
    if (!expected.grad().defined()) {
      EXPECT_TRUE(!gradient.defined() || gradient.count_nonzero().item<int64_t>() == 0)
          << "gradient of " << piece.name << " " << when;
      continue;
    }
    ASSERT_TRUE(gradient.defined()) << "gradient of " << piece.name << " " << when;
    EXPECT_TRUE(torch::allclose(gradient, part_of(expected.grad(), piece), tolerance, tolerance))
        << "gradient of " << piece.name << " " << when;
  }
  EXPECT_EQ(compared, whole.size());
}

}  // namespace distributed_utils::fsdp
