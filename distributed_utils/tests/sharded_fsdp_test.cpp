// FullyShardedDataParallel in sharded models, in checkpoints and in one file.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <map>
#include <numeric>

#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using torch::Tensor;

constexpr int kStepsBefore = 3, kStepsAfter = 2;
constexpr int kMostRanks = 6;  // each number of ranks in use shares the rows of so many

/// A sharded run of a group, whose weights depend on the seed.
struct ShardedRun {
  explicit ShardedRun(const Group& its_group, int seed = 5, const NetShape& shape = {},
                      const Group& replicas = {})
      : group(its_group),
        net(make_net(shape, torch::kDouble, seed)),
        model(net, {.group = group, .replicate_group = replicas, .units = net->units}),
        optimizer(each_once(model->parameters()), torch::optim::AdamWOptions(1e-2)) {}

  void train(int first, int last) {
    const int64_t own = int64_t{kRows} * kMostRanks / get_world_size(group);
    for (int step = first; step < last; ++step) {
      optimizer.zero_grad();
      const auto rows = global_rows(step, kMostRanks).narrow(0, get_rank(group) * own, own);
      loss_of(model->forward(rows)).backward();
      optimizer.step();
    }
  }

  /// All pieces of parameters and optimizer, by name.
  std::map<std::string, Tensor> pieces() const {
    const torch::NoGradGuard no_grad;
    std::map<std::string, Tensor> result;
    for (const auto& piece : model->placements()) result[piece.name] = piece.tensor.clone();
    for (const auto& [name, tensor] : optimizer_state_dict(optimizer, *model)) {
      result[name] = tensor.clone();
    }
    return result;
  }

  Group group;
  std::shared_ptr<Net> net;
  FullyShardedDataParallel<Net> model;
  torch::optim::AdamW optimizer;
};

/// The same of one process that is not sharded.
struct WholeRun {
  WholeRun() : net(make_net({}, torch::kDouble, 77)), optimizer(net->parameters(), 1e-2) {}
  std::shared_ptr<Net> net;
  torch::optim::AdamW optimizer;
};

/// Of a sharded run each piece is that of the whole one, to the bit or nearly.
void expect_part_of(const ShardedRun& run, const WholeRun& whole, double tolerance) {
  const auto parameters = state_dict(*whole.net);
  const auto state = optimizer_state_dict(whole.optimizer, *whole.net);
  const auto own_state = optimizer_state_dict(run.optimizer, *run.model);
  const auto expect = [&](const Tensor& own, const Tensor& all, const Placement& piece) {
    const Tensor part = piece.global_shape.empty() ? all : part_of(all, piece);
    EXPECT_TRUE(tolerance == 0 ? torch::equal(own, part)
                               : torch::allclose(own, part, tolerance, tolerance))
        << piece.name;
  };
  for (const auto& piece : run.model->placements()) {
    expect(piece.tensor, parameters.at(piece.name), piece);
    for (const std::string field : {"exp_avg.", "exp_avg_sq."}) {
      const auto found = own_state.find(field + piece.name);
      if (found != own_state.end()) expect(found->second, state.at(field + piece.name), piece);
    }
  }
}

void expect_same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(torch::equal(tensor, b.at(name))) << name;
}

/// The first `size` ranks, for those who are among them.
std::optional<Group> first_ranks(int size) {
  std::vector<int> members(size);
  std::iota(members.begin(), members.end(), 0);
  return new_group(members);
}

TEST(ShardedFsdp, SavedByFourIsLoadedAndResumedByAnyNumberWithoutADifference) {
  ranks::run(kMostRanks, [] {
    setup();
    const auto place = ranks::shared_folder();
    Group alone;
    for (int rank = 0; rank < kMostRanks; ++rank) {
      if (const auto group = new_group({rank})) alone = *group;
    }
    std::map<std::string, Tensor> saved, later;  // of each of the four
    if (const auto four = first_ranks(4)) {
      ShardedRun run(*four);
      run.train(0, kStepsBefore);
      saved = run.pieces();
      save_sharded_model(*run.model, run.optimizer, place / "model", *four);
      Checkpoints(place / "checkpoints", {.group = *four}).save(1, *run.model, run.optimizer);
      save0(*run.model, place / "model.safetensors", *four);
      run.train(kStepsBefore, kStepsBefore + kStepsAfter);
      later = run.pieces();
      save_sharded_model(*run.model, run.optimizer, place / "later", *four);
    }
    barrier();
    WholeRun whole, whole_later;
    load_sharded_model(*whole.net, whole.optimizer, place / "model", alone);
    load_sharded_model(*whole_later.net, whole_later.optimizer, place / "later", alone);
    EXPECT_EQ(whole.optimizer.state().size(), whole.net->parameters().size());
    for (const auto& [name, tensor] : load_file(place / "model.safetensors")) {
      EXPECT_TRUE(torch::equal(tensor, state_dict(*whole.net).at(name))) << name;
    }
    for (const int size : {1, 2, 3, 4, 6}) {
      SCOPED_TRACE(size);
      const auto group = first_ranks(size);
      if (!group) continue;
      for (const bool from_checkpoint : {false, true}) {
        ShardedRun run(*group, 40 + size);
        run.train(7, 8);  // values and a state that must go
        if (from_checkpoint) {
          const Checkpoints checkpoints(place / "checkpoints", {.group = *group});
          Checkpoints(checkpoints).load_latest().restore(*run.model, run.optimizer);
        } else {
          load_sharded_model(*run.model, run.optimizer, place / "model", *group);
        }
        expect_part_of(run, whole, 0);
        if (size == 4) expect_same(run.pieces(), saved);
        run.train(kStepsBefore, kStepsBefore + kStepsAfter);
        expect_part_of(run, whole_later, 1e-9);
        if (size == 4) expect_same(run.pieces(), later);
      }
    }
    destroy_process_group();
  });
}

TEST(ShardedFsdp, WithTiedFrozenAndUnusedParametersComesBack) {
  ranks::run(2, [] {
    setup();
    const auto folder = ranks::shared_folder() / "model";
    for (const NetShape& shape :
         {NetShape{.tied = true}, NetShape{.frozen = true}, NetShape{.unused = true}}) {
      ShardedRun saved({}, 5, shape), loaded({}, 6, shape);
      saved.train(0, 2);
      save_sharded_model(*saved.model, saved.optimizer, folder);
      load_sharded_model(*loaded.model, loaded.optimizer, folder);
      expect_same(loaded.pieces(), saved.pieces());
      saved.train(2, 3);
      loaded.train(2, 3);
      expect_same(loaded.pieces(), saved.pieces());
      barrier();
    }
    destroy_process_group();
  });
}

TEST(ShardedFsdp, OfReplicasIsWrittenOnceAndLoadedWithoutThem) {
  ranks::run(4, [] {
    setup();
    const auto folder = ranks::shared_folder() / "model";
    const auto among = [](const std::vector<std::vector<int>>& all) {
      Group own;
      for (const auto& members : all) {
        if (const auto group = new_group(members)) own = *group;
      }
      return own;
    };
    const Group shards = among({{0, 1}, {2, 3}}), replicas = among({{0, 2}, {1, 3}});
    ShardedRun saved(shards, 5, {}, replicas);
    saved.train(0, 1);
    save_sharded_model(*saved.model, saved.optimizer, folder);
    EXPECT_TRUE(std::filesystem::exists(folder / "shard-00002-model-00001-of-00001.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(folder / "shard-00003-model-00001-of-00001.safetensors"));
    ShardedRun again(shards, 6, {}, replicas), flat({}, 7);
    load_sharded_model(*again.model, again.optimizer, folder);
    expect_same(again.pieces(), saved.pieces());
    load_sharded_model(*flat.model, flat.optimizer, folder);
    save_sharded_model(*flat.model, flat.optimizer, folder);
    load_sharded_model(*again.model, again.optimizer, folder);
    expect_same(again.pieces(), saved.pieces());
    destroy_process_group();
  });
}

TEST(ShardedFsdp, ComputesWithWhatWasLoadedWhileItWasWhole) {
  ranks::run(2, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "model";
    const Tensor rows = own_rows(0, world.rank, 2);
    ShardedRun first({}, 5), second({}, 6);
    save_sharded_model(*first.model, folder);
    const torch::NoGradGuard no_grad;
    const Tensor wanted = first.model->forward(rows);
    second.model->forward(rows);
    second.model->unshard();
    load_sharded_model(*second.model, folder);
    EXPECT_TRUE(torch::equal(second.model->forward(rows), wanted));
    {
      const auto whole = second.model->summon_full_params();
      load_sharded_model(*second.model, folder);
      EXPECT_THROW(second.model->forward(rows), c10::Error) << "they are those of before";
    }
    EXPECT_TRUE(torch::equal(second.model->forward(rows), wanted));
    destroy_process_group();
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
