// When parameters are whole and when they are not, and what is said about it.
#include <gmock/gmock.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/fsdp.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/save.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

TEST(FsdpWhole, EvaluationsOfDifferentLengthEnd) {
  ranks::run(3, [] {
    const World world = setup();
    const auto twin = make_net();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    for (int round = 0; round < 2; ++round) {
      {
        const auto whole = model->summon_full_params();
        const torch::NoGradGuard no_grad;
        for (int batch = 0; batch < world.rank; ++batch) {
          const auto rows = global_rows(batch, 3);
          EXPECT_TRUE(torch::allclose(model->forward(rows), twin->forward(rows), kClose, kClose));
          EXPECT_TRUE(torch::allclose(net->forward(rows), twin->forward(rows), kClose, kClose));
        }
        EXPECT_TRUE(torch::equal(net->head->weight, twin->head->weight));
      }
      model->zero_grad();
      twin->zero_grad();
      loss_of(model->forward(own_rows(round, world.rank, 3))).backward();
      loss_of(twin->forward(global_rows(round, 3))).backward();
      expect_parts_of(*model, *twin, kClose, "in round " + std::to_string(round));
    }
    barrier();
  });
}

TEST(FsdpWhole, WithoutGradientsForwardIsTheTwinsAndFreesAll) {
  ranks::run(2, [] {
    setup();
    const auto twin = make_net({.twice = true});
    const auto net = make_net({.twice = true});
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    model->eval();
    EXPECT_FALSE(net->layers[0]->is_training());
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::allclose(model->forward(global_rows(0, 2)), twin->forward(global_rows(0, 2)),
                                kClose, kClose));
    for (const auto& parameter : net->parameters()) EXPECT_ANY_THROW(parameter.sum());
  });
}

TEST(FsdpWhole, AFreedParameterSaysWhoItIsAndWhatToDo) {
  ranks::run(2, [] {
    const World world = setup();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    const auto about = [](const char* name) {
      return AllOf(HasSubstr(std::string("The parameter ") + name + " is sharded"),
                   HasSubstr("Fix: "), HasSubstr("summon_full_params"));
    };
    EXPECT_THAT([&] { net->layers[1]->up->weight.norm(); },
                ThrowsMessage<c10::Error>(about("layer1.up.weight")));
    EXPECT_THAT([&] { net->scale.data().fill_(1); }, ThrowsMessage<c10::Error>(about("scale")));
    const auto rows = own_rows(0, world.rank, 2);
    // forward() itself passes the hooks by, which gather.
    EXPECT_THAT([&] { net->first->forward(rows); },
                ThrowsMessage<c10::Error>(about("first.weight")));
    EXPECT_THAT([&] { net->forward(rows); },
                ThrowsMessage<Error>(AllOf(HasSubstr("the block first was called outside"),
                                           HasSubstr("Fix: call model->forward()"))));
    loss_of(model->forward(rows)).backward();
    EXPECT_ANY_THROW(net->head->weight.sum()) << "is whole after backward()";
    EXPECT_NO_THROW(model->parameters()[0].sum());
  });
}

TEST(FsdpWhole, TrainingWhileAllIsWholeIsAnError) {
  ranks::run(2, [] {
    const World world = setup();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    const auto rows = own_rows(0, world.rank, 2);
    {
      const auto whole = model->summon_full_params();
      EXPECT_THAT([&] { loss_of(model->forward(rows)).backward(); },
                  ThrowsMessage<Error>(HasSubstr("summon_full_params() keeps parameters whole")));
    }
    EXPECT_NO_THROW(loss_of(model->forward(rows)).backward());
  });
}

TEST(FsdpWhole, UnshardGathersAheadAndReshardFrees) {
  ranks::run(2, [] {
    const World world = setup();
    const auto twin = make_net();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    model->unshard();
    const auto output = model->forward(own_rows(0, world.rank, 2));
    loss_of(output).backward();
    loss_of(twin->forward(global_rows(0, 2))).backward();
    expect_parts_of(*model, *twin, kClose, "after unshard");
    model->unshard();
    model->reshard();
    EXPECT_ANY_THROW(net->head->weight.sum());
  });
}

TEST(FsdpWhole, WhatAnUnfinishedStepGatheredIsGatheredAgain) {
  ranks::run(2, [] {
    const World world = setup();
    const auto net = make_net();
    const auto model =
        FullyShardedDataParallel(net, {.units = net->units, .reshard_after_forward = false});
    const auto rows = own_rows(0, world.rank, 2);
    const auto before = model->forward(rows);  // no backward(): parameters are whole still
    {
      const torch::NoGradGuard no_grad;
      for (auto& shard : model->parameters()) shard.zero_();
    }
    EXPECT_EQ(model->forward(rows).count_nonzero().item<int64_t>(), 0);
  });
}

TEST(FsdpWhole, ShardsHaveTheModelsNamesAndPlaces) {
  ranks::run(3, [] {
    const World world = setup();
    const NetShape shape = {.frozen = true};
    const auto twin = make_net(shape);
    const auto net = make_net(shape);
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    EXPECT_EQ(model->named_parameters().keys(), twin->named_parameters().keys());
    EXPECT_EQ(model->named_buffers().keys(), twin->named_buffers().keys());
    EXPECT_FALSE(model->named_parameters()["layer1.up.bias"].requires_grad());
    for (const auto& piece : placements(*model)) {
      EXPECT_EQ(piece.replicated, piece.name == "shift") << piece.name;
      if (piece.name != "layer0.up.weight") continue;  // of 7 rows: 3, 3 and 1
      EXPECT_EQ(piece.offset, (std::vector<int64_t>{3 * world.rank, 0}));
      EXPECT_EQ(piece.tensor.size(0), world.rank == 2 ? 1 : 3);
      EXPECT_EQ(piece.global_shape, (std::vector<int64_t>{7, kWidth}));
    }
    torch::optim::AdamW optimizer(model->parameters());
    loss_of(model->forward(own_rows(0, world.rank, 3))).backward();
    optimizer.step();
    const auto state = optimizer_state_dict(optimizer, *model);
    EXPECT_EQ(state.at("exp_avg.layer0.up.weight").size(0), world.rank == 2 ? 1 : 3);
    save0(*model, ranks::shared_folder() / "model.safetensors");
    const auto whole = load_file(ranks::shared_folder() / "model.safetensors");
    EXPECT_EQ(whole.at("layer0.up.weight").sizes(), (std::vector<int64_t>{7, kWidth}));
  });
}

TEST(FsdpWhole, AWorldOfOneRankSavesItsModelAsAnyOther) {
  ranks::run(1, [] {
    setup();
    const auto model = FullyShardedDataParallel(make_net());
    const auto file = ranks::shared_folder() / "model.safetensors";
    save0(*model, file);
    EXPECT_TRUE(torch::equal(load_file(file).at("scale"), torch::ones({1}, torch::kDouble)));
  });
}

TEST(FsdpWhole, AGroupOfOneRankHoldsTheModulesOwnParameters) {
  ranks::run(2, [] {
    const World world = setup();
    const auto own = new_group({0}), other = new_group({1});
    const auto net = make_net();
    const auto model =
        FullyShardedDataParallel(net, {.group = own ? *own : *other, .units = net->units});
    for (int step = 0; step < world.rank; ++step) {  // ranks differ, so no collective may be made
      loss_of(model->forward(own_rows(step, 0, 1))).backward();
    }
    EXPECT_TRUE(model->parameters()[0].is_same(net->parameters()[0]));
    EXPECT_FALSE(model->placements()[0].replicated) << "the other rank holds another model";
    const auto whole = model->summon_full_params();
    EXPECT_NO_THROW(net->forward(own_rows(0, 0, 1)));
    barrier();
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
