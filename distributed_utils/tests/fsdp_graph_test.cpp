// Forwards and backwards in another order than one after the other, each through all parameters.
#include <map>

#include "distributed_utils/fsdp.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using torch::Tensor;

/// Keeps its input and runs the block again in backward(), as recomputation does.
struct Recompute : torch::autograd::Function<Recompute> {
  using Run = std::function<Tensor(const Tensor&)>;
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const Run* run) {
    context->save_for_backward({input});
    context->saved_data["run"] = reinterpret_cast<int64_t>(run);
    const at::AutoGradMode without_gradients(false);
    return (*run)(input);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto input = context->get_saved_variables()[0].detach().set_requires_grad(true);
    const at::AutoGradMode with_gradients(true);
    const auto* run = reinterpret_cast<const Run*>(context->saved_data["run"].toInt());
    torch::autograd::backward({(*run)(input)}, {gradients[0]});
    return {input.grad(), Tensor()};
  }
};

/// A unit that recomputes its layer.
struct Recomputed : Block {
  explicit Recomputed(std::shared_ptr<Block> block)
      : inner(register_module("inner", std::move(block))),
        run([this](const Tensor& input) { return inner->forward(input); }) {}
  Tensor forward(const Tensor& input) override { return Recompute::apply(input, &run); }
  std::shared_ptr<Block> inner;
  Recompute::Run run;
};

/// Recomputes either within its units or around them.
struct RecomputingNet : torch::nn::Module {
  RecomputingNet(bool within_units, bool in_backward)
      : within(within_units), recomputes(in_backward) {
    first = register_module("first", std::make_shared<Project>(torch::randn({kWidth, kWidth})));
    units.push_back(first);
    for (const char* name : {"layer0", "layer1", "layer2"}) {
      std::shared_ptr<Block> layer = std::make_shared<Layer>(NetShape{});
      if (within) layer = std::make_shared<Recomputed>(layer);
      units.push_back(register_module(name, layer));
      runs.push_back([layer](const Tensor& input) { return (*layer)(input); });
    }
    to(torch::kDouble);
  }
  Tensor forward(const Tensor& input) {
    Tensor state = (*first)(input);
    for (const int i : {0, 1, 2, 0}) {  // the first one twice
      state = within || !recomputes ? runs[i](state) : Recompute::apply(state, &runs[i]);
    }
    return state;
  }
  bool within, recomputes;
  std::shared_ptr<Project> first;
  std::vector<std::shared_ptr<Block>> units;
  std::vector<Recompute::Run> runs;
};

TEST(FsdpGraph, RecomputationGivesTheSameGradients) {
  ranks::run(3, [] {
    const World world = setup();
    for (const bool within : {false, true}) {
      torch::manual_seed(5);
      RecomputingNet twin(within, false);
      torch::manual_seed(5);
      const auto net = std::make_shared<RecomputingNet>(within, true);
      const auto model = FullyShardedDataParallel(net, {.units = net->units});
      for (int step = 0; step < 2; ++step) {
        loss_of(model->forward(own_rows(step, world.rank, 3))).backward();
        loss_of(twin.forward(global_rows(step, 3))).backward();
        expect_parts_of(*model, twin, kClose, within ? "within" : "around");
      }
    }
  });
}

TEST(FsdpGraph, TwoForwardsMayComeBeforeABackwardAndTwoBackwardsAfterAForward) {
  ranks::run(2, [] {
    const World world = setup();
    for (const bool frozen : {false, true}) {
      const NetShape shape = {.frozen = frozen, .twice = true};
      const auto twin = make_net(shape);
      const auto net = make_net(shape);
      const auto model = FullyShardedDataParallel(net, {.units = net->units});
      const auto two = [](auto&& forward, auto&& rows) {
        const auto first = loss_of(forward(rows(0))), second = loss_of(forward(rows(1)));
        (first + 2 * second).backward();
        const auto third = forward(rows(2));
        loss_of(third).backward({}, /*retain_graph=*/true);
        third.mean().backward();
      };
      two([&](const Tensor& rows) { return model->forward(rows); },
          [&](int step) { return own_rows(step, world.rank, 2); });
      two([&](const Tensor& rows) { return twin->forward(rows); },
          [&](int step) { return global_rows(step, 2); });
      expect_parts_of(*model, *twin, kClose, frozen ? "frozen" : "all trained");
    }
  });
}

TEST(FsdpGraph, AForwardMayLeaveOutAUnitThatTheLastOneCalled) {
  ranks::run(2, [] {
    const World world = setup();
    const auto twin = make_net();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    for (int step = 0; step < 4; ++step) {
      net->skips = twin->skips = step % 2 == 1;
      model->zero_grad();
      twin->zero_grad();
      const auto loss = loss_of(model->forward(own_rows(step, world.rank, 2)));
      EXPECT_ANY_THROW(net->layers[1]->up->weight.sum()) << "was gathered in vain, and stayed";
      loss.backward();
      loss_of(twin->forward(global_rows(step, 2))).backward();
      expect_parts_of(*model, *twin, kClose, "at step " + std::to_string(step));
    }
  });
}

/// Multiplies by two parameters, or by one.
struct Fork : Block {
  Tensor forward(const Tensor& input) override {
    return takes_both ? input * left * right : input * left;
  }
  bool takes_both = true;
  Tensor left = register_parameter("left", torch::full({3}, 2.0, torch::kDouble));
  Tensor right = register_parameter("right", torch::full({3}, 3.0, torch::kDouble));
};

struct ForkingNet : torch::nn::Module {
  ForkingNet() {
    for (const char* name : {"a", "b", "c"}) {
      units.push_back(register_module(name, std::make_shared<Fork>()));
    }
  }
  Tensor forward(const Tensor& input) {
    auto state = input;
    for (const auto& unit : units) state = (*unit)(state);
    return state.sum();
  }
  std::vector<std::shared_ptr<Block>> units;
};

// Rank 0 could reduce b as soon as its gradients are there; on rank 1 one of them never is.
TEST(FsdpGraph, RanksMayLeaveOutDifferentParametersOfAUnit) {
  ranks::run(2, [] {
    const World world = setup();
    // Of a.left: 3 * 6 * 6 on rank 0 and 3 * 2 * 6 on rank 1.
    const std::map<std::string, double> expected = {{"a.left", 72}, {"a.right", 48},
                                                    {"b.left", 72}, {"b.right", 36},
                                                    {"c.left", 72}, {"c.right", 48}};
    for (const int prefetch : {0, 1, 2}) {
      const auto net = std::make_shared<ForkingNet>();
      const auto model =
          FullyShardedDataParallel(net, {.units = net->units, .backward_prefetch = prefetch});
      dynamic_cast<Fork&>(*net->units[1]).takes_both = world.rank == 0;
      model->forward(torch::ones({3}, torch::kDouble).requires_grad_()).backward();
      for (const auto& [name, value] : expected) {
        const auto shard = model->named_parameters()[name];
        EXPECT_TRUE(torch::equal(shard.grad(), torch::full_like(shard, value))) << name;
      }
    }
  });
}

/// A block with a parameter of its own around another block.
struct Outer : Block {
  explicit Outer(std::shared_ptr<Block> block)
      : inner(register_module("inner", std::move(block))),
        weight(register_parameter("weight", torch::randn({kWidth}))) {}
  Tensor forward(const Tensor& input) override { return (*inner)(input * weight) * weight; }
  std::shared_ptr<Block> inner;
  Tensor weight;
};

struct NestingNet : torch::nn::Module {
  NestingNet() {
    for (const char* name : {"first", "second"}) {
      const auto outer = std::make_shared<Outer>(std::make_shared<Layer>(NetShape{}));
      chain.push_back(register_module(name, outer));
      units.insert(units.end(), {outer, outer->inner});
    }
    to(torch::kDouble);
  }
  Tensor forward(const Tensor& input) { return (*chain[1])((*chain[0])(input)); }
  std::vector<std::shared_ptr<Block>> chain, units;
};

TEST(FsdpGraph, UnitsMayLieWithinUnits) {
  ranks::run(3, [] {
    const World world = setup();
    torch::manual_seed(5);
    NestingNet twin;
    torch::manual_seed(5);
    const auto net = std::make_shared<NestingNet>();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    for (int step = 0; step < 2; ++step) {
      loss_of(model->forward(own_rows(step, world.rank, 3))).backward();
      loss_of(twin.forward(global_rows(step, 3))).backward();
      expect_parts_of(*model, twin, kClose, "at step " + std::to_string(step));
    }
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
