// What is refused when a sharded model is saved or loaded, on all ranks alike and without a change.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>

#include "box_net.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "ranks.hpp"
#include "same_error.hpp"

namespace distributed_utils {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace fs = std::filesystem;

/// What all ranks say, having changed nothing, when something is wrong.
class Refusal {
 public:
  explicit Refusal(const fs::path& folder)
      : folder_(folder), run_(get_rank(), {get_world_size(), 1}) {
    run_.train(0, 1);
    save_sharded_model(run_.net, folder);
  }

  std::string of(const std::function<void(BoxRun& other)>& change, bool with_optimizer = false) {
    BoxRun other(get_rank(), {get_world_size(), 1});
    change(other);
    const auto before = values(other);
    const auto error = error_of_all_ranks([&] {
      if (with_optimizer) {
        load_sharded_model(other.net, other.optimizer, folder_);
      } else {
        load_sharded_model(other.net, folder_);
      }
    });
    if (error.empty()) return error;
    const auto after = values(other);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(before[i], after[i]));
    return error;
  }

 private:
  static std::vector<at::Tensor> values(const BoxRun& run) {
    std::vector<at::Tensor> result;
    for (const auto& piece : run.net.pieces) result.push_back(piece.tensor.detach().clone());
    return result;
  }

  fs::path folder_;
  BoxRun run_;
};

TEST(ShardedModelRefusals, AnotherModelIsRefusedOnAllRanks) {
  ranks::run(3, [] {
    setup();
    Refusal refusal(ranks::shared_folder() / "model");
    EXPECT_THAT(refusal.of([](auto& run) { run.net.pieces[0].name = "box.other"; }),
                HasSubstr("model: 'box.other' is not in it"));
    EXPECT_THAT(refusal.of([](auto& run) { run.net.pieces.erase(run.net.pieces.begin()); }),
                HasSubstr("it holds 'box.weight', which the model does not have"));
    EXPECT_THAT(refusal.of([](auto& run) {
      run.net.pieces[0].global_shape = {14, 6};
    }),
                HasSubstr("'box.weight' has shape [13, 6] in its files, but [14, 6] in the model"));
    EXPECT_THAT(
        refusal.of([](auto& run) {
          run.net.pieces[0].tensor = run.net.pieces[0].tensor.to(torch::kFloat);
        }),
        HasSubstr("'box.weight' was saved as Double, but the model has it as Float. Fix: convert"));
    EXPECT_THAT(refusal.of([](auto&) {}, /*with_optimizer=*/true),
                HasSubstr("holds no optimizer state. Fix: load_sharded_model(model, folder)"));
    EXPECT_EQ(refusal.of([](auto&) {}), "") << "it loads what is right";
  });
}

// A shape that happens to be that of this rank's piece is not the whole tensor's.
TEST(ShardedModelRefusals, AWholeTensorOfAPiecesShapeIsRefused) {
  ranks::run(2, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "model";
    const auto file = ranks::shared_folder() / "model.safetensors";
    struct Rows : torch::nn::Module, Placed {
      Rows(int64_t rows, int64_t whole, int64_t offset)
          : tensor(register_parameter("rows", torch::zeros({rows, 2}))) {
        piece = {"rows", tensor, {whole, 2}, {offset, 0}, /*replicated=*/rows == whole};
      }
      std::vector<Placement> placements() const override { return {piece}; }
      at::Tensor tensor;
      Placement piece;
    };
    const Rows whole(4, 4, 0);
    save_sharded_model(whole, folder);
    save0(whole, file);
    Rows half(4, 8, 4 * world.rank);
    torch::optim::SGD optimizer(half.parameters(), 0.1);
    const auto refused = HasSubstr("'rows' has shape [4, 2], the model's has [8, 2]");
    EXPECT_THAT(error_of_all_ranks([&] { load_sharded_model(half, folder); }),
                HasSubstr("'rows' has shape [4, 2] in its files, but [8, 2] in the model"));
    EXPECT_THAT(error_of_all_ranks([&] {
                  barrier();
                  load(half, file);
                }),
                refused);
    Rows saved(4, 4, 0);
    torch::optim::SGD saved_optimizer(saved.parameters(), 0.1);
    Checkpoints kept(ranks::shared_folder() / "checkpoints");
    kept.save(1, saved, saved_optimizer);
    EXPECT_THAT(error_of_all_ranks([&] { kept.load_latest().restore(half, optimizer); }), refused);
  });
}

TEST(ShardedModelRefusals, PiecesThatDoNotMakeTheWholeAreNotSaved) {
  ranks::run(2, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "model";
    const auto file = ranks::shared_folder() / "model.safetensors";
    const auto refused = [&](int64_t offset, int64_t rows, const std::string& text) {
      BoxRun run(world.rank, {2, 1});
      auto& weight = run.net.pieces[0];  // 7 and 6 rows of 13
      if (world.rank == 1) {
        weight.offset[0] = offset;
        weight.tensor = weight.tensor.narrow(0, 0, rows);
      }
      EXPECT_THAT(error_of_all_ranks([&] { save_sharded_model(run.net, folder); }),
                  HasSubstr(text));
      EXPECT_THAT(error_of_all_ranks([&] { save_full_model(run.net, file); }), HasSubstr(text));
      EXPECT_FALSE(fs::exists(folder));
      EXPECT_FALSE(fs::exists(file));
      barrier();
    };
    refused(6, 6, "holds elements of 'box.weight' that");
    refused(8, 6, "its piece of 'box.weight', of shape [6, 6] from [8, 0] on, is outside");
    refused(7, 5, "no file in the folder holds 6 of its 78 elements");
  });
}

TEST(ShardedModelRefusals, AFolderOfEachRankIsRefused) {
  ranks::run(2, [] {
    const World world = setup();
    const BoxNet net(world.rank, {2, 1});
    const auto own = ranks::shared_folder() / ("model-" + std::to_string(world.rank));
    EXPECT_THAT(error_of_all_ranks([&] { save_sharded_model(net, own); }),
                AllOf(HasSubstr("rank 1: "), HasSubstr("give all ranks the same folder")));
    EXPECT_FALSE(fs::exists(own));
  });
}

TEST(ShardedModelRefusals, AFailedSaveLeavesTheOldOne) {
  ranks::run(2, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "place" / "model";
    Refusal refusal(folder);
    BoxRun run(world.rank, {2, 1});
    if (world.rank == 1) run.net.pieces[1].tensor = torch::zeros({2, 3, 7}, torch::kComplexFloat);
    EXPECT_THAT(error_of_all_ranks([&] { save_sharded_model(run.net, folder); }),
                AllOf(HasSubstr("rank 1: "), HasSubstr("no type for 'box.cube'")));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.parent_path()), {}), 1);
    EXPECT_EQ(refusal.of([](auto&) {}), "");
  });
}

TEST(ShardedModelRefusals, AFolderOfOtherThingsIsNotReplaced) {
  const ranks::TemporaryFolder folder;
  ranks::run(1, [&] {
    BoxRun run(0, {});
    std::ofstream(folder / "file") << "mine";
    fs::create_directories(folder / "output" / "deeper");
    EXPECT_THAT([&] { save_sharded_model(run.net, folder / "output"); },
                ThrowsMessage<Error>(HasSubstr("would remove 'deeper', which does not belong to")));
    EXPECT_THAT([&] { save_sharded_model(run.net, folder / "file"); },
                ThrowsMessage<Error>(HasSubstr("is not a folder. Fix: remove it")));
    EXPECT_THAT([&] { load_sharded_model(run.net, folder / "file"); },
                ThrowsMessage<Error>(HasSubstr("is not a folder. Fix: load(model, file)")));
    EXPECT_THAT([&] { load_sharded_model(run.net, folder / "none"); },
                ThrowsMessage<Error>(HasSubstr("none: is missing. Fix: ")));
    EXPECT_THAT([&] { load_sharded_model(run.net, folder / "output"); },
                ThrowsMessage<Error>(HasSubstr("holds no *.safetensors file. Fix: ")));
    EXPECT_THAT([&] { load(run.net, folder / "output"); },
                ThrowsMessage<Error>(HasSubstr("is a folder. Fix: load_sharded_model(")));
    Checkpoints(folder / "checkpoints").save(1, run.net, run.optimizer);
    EXPECT_THAT([&] { load_sharded_model(run.net, *latest(folder / "checkpoints")); },
                ThrowsMessage<Error>(HasSubstr("is a checkpoint of a run. Fix: Checkpoints")));
    EXPECT_THAT([&] { save_sharded_model(run.net, *latest(folder / "checkpoints")); },
                ThrowsMessage<Error>(HasSubstr("which does not belong to a sharded model")));
  });
}

}  // namespace
}  // namespace distributed_utils
