// FullyShardedDataParallel trains as one process does.
#include "distributed_utils/fsdp.hpp"

#include "distributed_utils/collectives.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using torch::Tensor;

// AdamW divides by the gradient's own size, so that its last bits count for more, and so do those
// of sums of many.
constexpr double kLoose = 1e-9;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(bool adam,
                                                        const std::vector<Tensor>& parameters) {
  if (adam) {
    return std::make_unique<torch::optim::AdamW>(each_once(parameters),
                                                 torch::optim::AdamWOptions(1e-2));
  }
  return std::make_unique<torch::optim::SGD>(each_once(parameters),
                                             torch::optim::SGDOptions(0.1).momentum(0.5));
}

struct Case {
  std::string name;
  NetShape shape = {};
  bool adam = false;
  bool has_units = true;
  FullyShardedDataParallelOptions options = {};
};

/// Trains three steps sharded, and beside it, on this rank alone, a twin on everybody's rows.
void train_beside_twin(const World& world, Case what) {
  SCOPED_TRACE(what.name);
  const auto twin = make_net(what.shape);
  twin->to(world.device);
  // Ranks start apart; the wrapper gives them rank 0's weights.
  const auto net = make_net(what.shape, torch::kDouble, 5 + world.rank);
  net->to(world.device);
  if (what.has_units) what.options.units = net->units;
  const auto model = FullyShardedDataParallel(net, what.options);
  const auto optimizer = make_optimizer(what.adam, model->parameters());
  const auto twin_optimizer = make_optimizer(what.adam, twin->parameters());
  const double tolerance = what.adam || what.shape.hidden > 1000 ? kLoose : kClose;
  for (int step = 0; step < 3; ++step) {
    optimizer->zero_grad();
    twin_optimizer->zero_grad();
    const auto rows = own_rows(step, world.rank, world.world_size).to(world.device);
    const auto loss = loss_of(model->forward(rows));
    const auto all_rows = global_rows(step, world.world_size).to(world.device);
    const auto twin_loss = loss_of(twin->forward(all_rows));
    loss.backward();
    twin_loss.backward();
    const auto mean = loss.detach().clone();
    all_reduce(mean, ReduceOp::AVG);
    EXPECT_NEAR(mean.item<double>(), twin_loss.item<double>(), tolerance) << "step " << step;
    expect_parts_of(*model, *twin, tolerance, "at step " + std::to_string(step));
    optimizer->step();
    twin_optimizer->step();
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool adam : {false, true}) {
    for (const bool reshard : {false, true}) {
      for (const int prefetch : {0, 1}) {
        all.push_back({.name = std::string(adam ? "AdamW" : "SGD") + (reshard ? ", freed" : "") +
                               ", prefetch " + std::to_string(prefetch),
                       .adam = adam,
                       .options = {.reshard_after_forward = reshard,
                                   .forward_prefetch = prefetch,
                                   .backward_prefetch = prefetch}});
      }
    }
  }
  all.push_back({.name = "no units", .has_units = false});
  all.push_back({.name = "tied", .shape = {.tied = true}});
  all.push_back({.name = "frozen", .shape = {.frozen = true}});
  all.push_back({.name = "unused", .shape = {.unused = true}});
  all.push_back({.name = "twice", .shape = {.twice = true}});
  all.push_back({.name = "twice, far ahead",
                 .shape = {.twice = true},
                 .options = {.forward_prefetch = 3, .backward_prefetch = 3}});
  all.push_back({.name = "everything",
                 .shape = {.tied = true, .frozen = true, .unused = true, .twice = true}});
  all.push_back({.name = "a large parameter", .shape = {.hidden = 27001}});
  return all;
}

class Fsdp : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Fsdp, testing::Values(1, 2, 3, 4));

TEST_P(Fsdp, TrainsLikeOneRankOnAllRows) {
  ranks::run(GetParam(), [] {
    const World world = setup({.device = c10::Device(c10::kCPU)});
    for (const auto& one : cases()) train_beside_twin(world, one);
  });
}

TEST(FsdpOnGpus, TrainsLikeOneRankOnAllRows) {
  if (ranks::gpus() < 2) GTEST_SKIP() << "two GPUs are needed";
  ranks::run(2, [] {
    const World world = setup({.device = c10::Device(c10::kCUDA)});
    for (const auto& one : cases()) train_beside_twin(world, one);
    destroy_process_group();
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
