// FullyShardedDataParallel does what PyTorch's fully_shard does: shards, losses, norms.
#include <nlohmann/json.hpp>

#include "distributed_utils/fsdp.hpp"
#include "fsdp_net.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using torch::Tensor;

// The numbers of oracle/fsdp.py.
constexpr int kPeerRanks = 3, kPeerSteps = 4;

void set_peer_values(const torch::nn::Module& net) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : net.named_parameters()) {
    const auto numbers = torch::arange(item.value().numel(), torch::kDouble);
    const auto offset = static_cast<double>(item.key().size());
    item.value().copy_(torch::sin(0.7 * numbers + offset).view(item.value().sizes()) / 2);
  }
}

Tensor peer_rows(int step, int rank) {
  const int64_t size = kRows * kWidth, first = (step * kPeerRanks + rank) * size;
  const auto numbers = torch::arange(first, first + size, torch::kDouble);
  return torch::cos(1.3 * numbers).view({kRows, kWidth});
}

void expect_numbers(const Tensor& ours, const nlohmann::json& theirs, double tolerance,
                    const std::string& what) {
  const auto expected = torch::tensor(theirs.get<std::vector<double>>(), torch::kDouble);
  const auto flat = ours.detach().to(torch::kDouble).flatten();
  ASSERT_EQ(flat.numel(), expected.numel()) << what;
  EXPECT_TRUE(torch::allclose(flat, expected, tolerance, tolerance))
      << what << " is off by " << (flat - expected).abs().max().item<double>();
}

void train_as_peer(const World& world, torch::Dtype type, const MixedPrecisionPolicy& policy,
                   const nlohmann::json& peer, double tolerance) {
  const auto net = make_net({.twice = true}, type);
  set_peer_values(*net);
  const auto model = FullyShardedDataParallel(net, {.units = net->units, .mp_policy = policy});
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
  std::vector<Tensor> losses, norms;
  for (int step = 0; step < kPeerSteps; ++step) {
    optimizer.zero_grad();
    const auto rows = peer_rows(step, world.rank).to(policy.param_dtype.value_or(type));
    const auto loss = loss_of(model->forward(rows));
    loss.backward();
    norms.push_back(model->clip_grad_norm_(0.1));
    losses.push_back(loss.detach());
    optimizer.step();
  }
  expect_numbers(torch::stack(losses), peer["loss"], tolerance, "loss");
  expect_numbers(torch::stack(norms), peer["norm"], tolerance, "norm");
  for (const auto& item : model->named_parameters()) {
    expect_numbers(item.value(), peer[item.key()], tolerance, item.key());
    expect_numbers(item.value().grad(), peer["gradient of " + item.key()], tolerance,
                   "gradient of " + item.key());
  }
}

TEST(FsdpPeer, HasTheSameShardsAsPythons) {
  const auto peer = oracle::json("fsdp.py", {});
  if (!peer) GTEST_SKIP() << oracle::kMissing;
  ranks::run(kPeerRanks, [&] {
    const World world = setup();
    const auto& own = (*peer)[world.rank];
    train_as_peer(world, torch::kDouble, {}, own["fp64"], 1e-12);
    train_as_peer(world, torch::kFloat,
                  {.param_dtype = torch::kBFloat16, .reduce_dtype = torch::kFloat}, own["bf16"],
                  1e-6);
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
