// Resumed runs: bit for bit the uninterrupted one in the same world, step by step the same samples
// and losses in another.
#include <gmock/gmock.h>

#include <set>

#include "checkpoint_trainer.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using checkpoint_test::same_bits;
using checkpoint_test::Settings;
using checkpoint_test::Trainer;
using torch::Tensor;

/// A directory that all ranks see, for a run that saves at `step`.
std::filesystem::path directory_of(int64_t step) {
  return ranks::shared_folder() / ("checkpoints." + std::to_string(step));
}

/// Trains to `step`, saves, and forgets everything.
void train_and_save(const Settings& settings, int64_t step, const CheckpointOptions& options = {}) {
  Trainer trainer(settings, {});
  trainer.train(step);
  Checkpoints checkpoints(directory_of(step), options);
  trainer.save(checkpoints);
}

Trainer resumed(const Settings& settings, int64_t step, const CheckpointOptions& options = {}) {
  return {settings, Checkpoints(directory_of(step), options).load_latest()};
}

class Resume : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Resume, testing::Values(1, 2, 3));

// The buckets are rebuilt in the second step's forward; 8 steps are an epoch of three ranks, 12 of
// two, 24 of one.
TEST_P(Resume, IsBitForBitTheUninterruptedRun) {
  ranks::run(GetParam(), [] {
    setup();
    const int64_t last = 26;
    Trainer whole({}, {});
    whole.train(last);
    const StateDict expected = whole.state();
    for (const int64_t at : {1, 2, 5, 8, 12, 17, 24}) {
      train_and_save({}, at);
      Trainer rest = resumed({}, at);
      rest.train(last);
      EXPECT_TRUE(same_bits(rest.state(), expected)) << "resumed at step " << at;
      for (const auto& [step, ids] : rest.ids) EXPECT_EQ(ids, whole.ids.at(step)) << step;
      for (const auto& [step, loss] : rest.losses) EXPECT_EQ(loss, whole.losses.at(step)) << step;
    }
  });
}

// So the test above would notice a layout that was lost.
TEST(Resume, WithoutTheBucketLayoutBitsDiffer) {
  ranks::run(3, [] {
    setup();
    Trainer whole({}, {});
    whole.train(12);
    const StateDict expected = whole.state();
    train_and_save({}, 5);
    Trainer rest = resumed({.with_layout = false}, 5);
    rest.train(12);
    const StateDict state = rest.state();
    EXPECT_FALSE(same_bits(state, expected));
    for (const auto& [name, tensor] : expected) {
      EXPECT_TRUE(
          torch::allclose(state.at(name).to(torch::kDouble), tensor.to(torch::kDouble), 1e-3, 1e-4))
          << name;
    }
  });
}

/// Without chance, and with so many digits that the order of additions does not show.
Settings exact(const Group& group, int64_t batch_size) {
  return {.group = group, .batch_size = batch_size, .dropout = 0, .precision = torch::kDouble};
}

/// All ranks' samples of a step.
std::multiset<size_t> all_ids(const std::vector<size_t>& mine, const Group& group) {
  const auto ids = torch::tensor(std::vector<int64_t>(mine.begin(), mine.end()));
  const Tensor all = all_gather(ids, group).flatten().contiguous();
  const auto* first = all.const_data_ptr<int64_t>();
  return {first, first + all.numel()};
}

/// A run of `before` ranks, saved at step 3, goes on with `after` ranks; both make global batches
/// of 12, so that step by step samples and losses are those of the run that went on as it was.
void resume_with_other_ranks(int before, int after) {
  const World world = setup();
  const auto two = new_group({0, 1});
  const auto group_of = [&](int ranks) { return ranks == 3 ? std::optional(Group()) : two; };
  if (const auto group = group_of(before)) {
    train_and_save(exact(*group, 12 / before), 3, {.group = *group});
  }
  barrier();
  // The uninterrupted run, by the former ranks: its samples and losses go to all through a file.
  const auto file = ranks::shared_folder() / "uninterrupted.safetensors";
  if (const auto group = group_of(before)) {
    Trainer whole(exact(*group, 12 / before), {});
    whole.train(14);
    StateDict steps;
    for (const auto& [step, ids] : whole.ids) {
      const auto all = all_ids(ids, *group);
      steps["ids." + std::to_string(step)] =
          torch::tensor(std::vector<int64_t>(all.begin(), all.end()));
      steps["loss." + std::to_string(step)] = torch::tensor(whole.losses.at(step), torch::kDouble);
    }
    if (world.rank == 0) save_file(steps, file);
  }
  barrier();
  const auto group = group_of(after);
  if (!group) return;
  const StateDict whole = load_file(file);
  const CheckpointOptions options = {.group = *group};
  EXPECT_TRUE(Checkpoints(directory_of(3), options).load_latest().bucket_indices().empty());
  Trainer rest = resumed(exact(*group, 12 / after), 3, options);
  rest.train(14);
  EXPECT_EQ(rest.ids.size(), 11U);
  for (const auto& [step, ids] : rest.ids) {
    const Tensor expected = whole.at("ids." + std::to_string(step));
    const auto* first = expected.const_data_ptr<int64_t>();
    EXPECT_EQ(all_ids(ids, *group), std::multiset<size_t>(first, first + expected.numel())) << step;
    EXPECT_NEAR(rest.losses.at(step), whole.at("loss." + std::to_string(step)).item<double>(),
                1e-12)
        << step;
  }
}

TEST(Resume, OfThreeRanksByTwoMakesTheSameSteps) {
  ranks::run(3, [] { resume_with_other_ranks(3, 2); });
}

TEST(Resume, OfTwoRanksByThreeMakesTheSameSteps) {
  ranks::run(3, [] { resume_with_other_ranks(2, 3); });
}

TEST(Resume, WithOtherRanksSeedsThemApartAndAlikeEachTime) {
  ranks::run(3, [] {
    const World world = setup();
    const auto two = new_group({0, 1});
    if (two) train_and_save({.group = *two}, 2, {.group = *two});
    barrier();
    const Tensor once = resumed({}, 2).state().at("next random numbers");
    const Tensor again = resumed({}, 2).state().at("next random numbers");
    EXPECT_TRUE(torch::equal(once, again));
    const Tensor all = all_gather(once);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(torch::equal(all[rank], once), rank == world.rank);
    }
  });
}

TEST(Resume, DealsOutWhatFormerRanksKept) {
  ranks::run(3, [] {
    const World world = setup();
    const auto two = new_group({0, 1});
    torch::nn::Linear model(2, 2);
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    const auto numbers = [](const Checkpoint& checkpoint) {
      std::vector<int> result;
      for (const auto& state : checkpoint.rank_states()) {
        result.push_back(state.at("number").item<int>());
      }
      return result;
    };
    Checkpoints(directory_of(0))
        .save(0, *model, optimizer, {}, {{"number", torch::tensor(world.rank)}});
    EXPECT_THAT(numbers(Checkpoints(directory_of(0)).load_latest()),
                testing::ElementsAre(world.rank));
    if (!two) return;
    const auto of_two = Checkpoints(directory_of(0), {.group = *two}).load_latest();
    EXPECT_EQ(of_two.world_size(), 3);
    EXPECT_EQ(numbers(of_two), world.rank == 0 ? (std::vector{0, 2}) : std::vector{1});
  });
}

}  // namespace
}  // namespace distributed_utils
