// Checkpoints of a model of which each rank holds a part.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <numeric>

#include "box_net.hpp"
#include "checkpoint/checkpoint_directory.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "cut_net.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "files/safetensors_format.hpp"
#include "ranks.hpp"
#include "same_error.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using torch::Tensor;

constexpr int kSaved = 3;  // steps before the checkpoint
constexpr int kLater = 2;  // and after it

/// A rank's part of the model and its optimizer, somewhere in the run.
struct PartOfRun {
  explicit PartOfRun(const World& world, int64_t cut = 0)
      : net(world.rank, world.world_size, cut), optimizer(net.parameters(), 0.01) {}
  void train(int first, int last) {
    for (int step = first; step < last; ++step) net.train_step(optimizer, step + 1);
  }
  CutNet net;
  torch::optim::AdamW optimizer;
};

void save_at(int world_size, const std::filesystem::path& folder, int64_t cut = 0) {
  ranks::run(world_size, [&] {
    PartOfRun run(setup(), cut);
    run.train(0, kSaved);
    Checkpoints(folder).save(kSaved, run.net, run.optimizer);
    destroy_process_group();
  });
}

/// Restores into a model that has other values, and goes on.
void expect_resumed(int world_size, const std::filesystem::path& folder, int64_t cut = 0) {
  ranks::run(world_size, [&] {
    const World world = setup();
    PartOfRun run(world, cut);
    run.train(40, 41);
    Checkpoints(folder).load_latest().restore(run.net, run.optimizer);
    PartOfRun serial({.rank = 0, .local_rank = 0, .world_size = 1, .device = world.device});
    serial.train(0, kSaved);
    for (int step = kSaved; step <= kSaved + kLater; ++step) {
      for (const auto& piece : run.net.pieces) {
        const auto whole = serial.net.named_parameters()[piece.name.substr(6)];
        EXPECT_TRUE(torch::equal(piece.tensor, CutNet::part(whole, piece)))
            << piece.name << " before step " << step;
      }
      run.train(step, step + 1);
      serial.train(step, step + 1);
    }
    destroy_process_group();
  });
}

class CheckpointOfParts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, CheckpointOfParts, testing::Values(1, 2, 3));

TEST_P(CheckpointOfParts, ByTwoRanksIsLoadedByAnyNumberWithoutADifference) {
  const ranks::TemporaryFolder folder;
  save_at(2, folder.path());
  expect_resumed(GetParam(), folder.path());
}

TEST_P(CheckpointOfParts, IsLoadedByRanksThatCutAnotherDimension) {
  const ranks::TemporaryFolder folder;
  save_at(GetParam(), folder.path(), /*cut=*/1);
  expect_resumed(3, folder.path(), /*cut=*/0);
}

TEST(CheckpointOfParts, EachRankWritesItsPartAndNothingTwice) {
  const ranks::TemporaryFolder folder;
  save_at(3, folder.path());
  const auto manifest = detail::read_manifest(folder / detail::checkpoint_name(kSaved));
  std::map<std::string, int64_t> elements;
  std::map<std::string, std::vector<int64_t>> files;
  for (const auto& file : manifest.files) {
    for (const auto& tensor : file.tensors) {
      int64_t size = 1;
      for (const int64_t extent : tensor.local_shape) size *= extent;
      elements[tensor.name] += size;
      files[file.name + ":" + tensor.name] = tensor.offset;
    }
  }
  EXPECT_EQ(elements.at("layer.weight"), 35);
  EXPECT_EQ(elements.at("exp_avg.layer.weight"), 35);
  EXPECT_EQ(elements.at("step.layer.weight"), 1);
  EXPECT_EQ(elements.at("layer.bias"), 5);
  EXPECT_EQ(files.at("model-1.safetensors:layer.weight"), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(files.at("optimizer-2.safetensors:exp_avg_sq.layer.weight"),
            (std::vector<int64_t>{6, 0}));
  EXPECT_TRUE(files.contains("model.safetensors:layer.bias"));
  EXPECT_TRUE(files.contains("model-2.safetensors:layer.last"));
  EXPECT_FALSE(files.contains("model-2.safetensors:layer.short")) << "it has no rows of it";
}

TEST(CheckpointOfParts, HeldAlikeBySeveralRanksIsWrittenOnce) {
  const ranks::TemporaryFolder folder;
  ranks::run(4, [&] {
    const World world = setup();
    CutNet net(world.rank % 2, 2);  // two replicas
    torch::optim::SGD optimizer(net.parameters(), 0.1);
    Checkpoints checkpoints(folder.path());
    checkpoints.save(kSaved, net, optimizer);
    CutNet other(world.rank / 2, 2);
    torch::optim::SGD other_optimizer(other.parameters(), 0.1);
    checkpoints.load_latest().restore(other, other_optimizer);
    destroy_process_group();
  });
  const auto saved = folder / detail::checkpoint_name(kSaved);
  EXPECT_TRUE(std::filesystem::exists(saved / "model-1.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(saved / "model-2.safetensors"));
}

/// What all of two ranks say when they load a checkpoint of which something is wrong.
void expect_refused(const std::filesystem::path& folder, const std::vector<std::string>& texts) {
  ranks::run(2, [&] {
    PartOfRun run(setup());
    const auto before = run.net.pieces[0].tensor.clone();
    const auto error = error_of_all_ranks(
        [&] { Checkpoints(folder).load_latest().restore(run.net, run.optimizer); });
    for (const auto& text : texts) EXPECT_THAT(error, HasSubstr(text));
    EXPECT_TRUE(torch::equal(run.net.pieces[0].tensor, before));
    destroy_process_group();
  });
}

TEST(CheckpointOfParts, AFileThatIsGoneOrDamagedIsNamedWithItsTensors) {
  const ranks::TemporaryFolder folder;
  save_at(2, folder.path());
  const auto file = folder / detail::checkpoint_name(kSaved) / "model-1.safetensors";
  std::filesystem::copy_file(file, folder / "good");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8);
  expect_refused(folder.path(), {"model-1.safetensors", "truncated", "'layer.weight'"});
  std::filesystem::copy_file(folder / "good", file,
                             std::filesystem::copy_options::overwrite_existing);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-3, std::ios::end);
    stream.put('x');
  }
  expect_refused(folder.path(), {"model-1.safetensors", "is damaged", "'layer.weight'"});
  std::filesystem::remove(file);
  expect_refused(folder.path(), {"model-1.safetensors", "is missing", "'layer.weight'"});
}

TEST(CheckpointOfParts, APartThatNoFileHoldsIsAnError) {
  const ranks::TemporaryFolder folder;
  save_at(2, folder.path());
  const auto saved = folder / detail::checkpoint_name(kSaved);
  auto manifest = detail::read_manifest(saved);
  std::erase_if(manifest.files,
                [](const auto& file) { return file.name == "model-0.safetensors"; });
  detail::write_manifest(saved, manifest);
  expect_refused(folder.path(),
                 {"manifest.json", "'layer.weight' is incomplete", "20 of the 20 elements"});
}

TEST(CheckpointOfParts, PiecesThatOverlapAreNotSaved) {
  const ranks::TemporaryFolder folder;
  ranks::run(2, [&] {
    PartOfRun run(setup());
    run.train(0, 1);
    if (get_rank() == 1) run.net.pieces[0].offset[0] -= 1;
    Checkpoints checkpoints(folder.path());
    EXPECT_THAT(error_of_all_ranks([&] { checkpoints.save(1, run.net, run.optimizer); }),
                HasSubstr("model-1.safetensors: it holds elements of 'layer.weight' that"));
    destroy_process_group();
  });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// One launch for all: what four ranks in rows and columns have saved is resumed by others.
TEST(CheckpointOfParts, InBoxesIsResumedByAnyNumberAndLayout) {
  ranks::run(6, [] {
    const World world = setup();
    const auto first = [](int size) {
      std::vector<int> members(size);
      std::iota(members.begin(), members.end(), 0);
      return new_group(members);
    };
    const auto folder = ranks::shared_folder() / "checkpoints";
    if (const auto four = first(4)) {
      BoxRun run(world.rank, {2, 2});
      run.train(0, kSaved);
      Checkpoints(folder, {.group = *four}).save(kSaved, run.net, run.optimizer);
    }
    barrier();
    for (const Grid& grid : {Grid{1, 1}, Grid{1, 2}, Grid{3, 1}, Grid{2, 3}}) {
      const auto group = first(grid.ranks());
      if (!group) continue;
      BoxRun run(world.rank, grid), serial(0, {});
      Checkpoints(folder, {.group = *group}).load_latest().restore(run.net, run.optimizer);
      serial.train(0, kSaved);
      for (int step = kSaved; step <= kSaved + kLater; ++step) {
        run.expect_part_of(serial);
        run.train(step, step + 1);
        serial.train(step, step + 1);
      }
    }
    destroy_process_group();
  });
}

TEST(CheckpointOfParts, AnotherShapeIsAnErrorOnAllRanks) {
  const ranks::TemporaryFolder folder;
  save_at(2, folder.path());
  ranks::run(2, [&] {
    PartOfRun run(setup());
    run.net.pieces[0].global_shape = {8, 5};
    const auto error = error_of_all_ranks(
        [&] { Checkpoints(folder.path()).load_latest().restore(run.net, run.optimizer); });
    EXPECT_THAT(error, HasSubstr("'layer.weight' has shape [7, 5], the model's has [8, 5]"));
    destroy_process_group();
  });
}

TEST(SafetensorsFile, ReadsAnyPartOfATensor) {
  const ranks::TemporaryFolder folder;
  const Tensor whole = torch::arange(3 * 4 * 5, torch::kFloat).view({3, 4, 5});
  save_file({{"a", torch::ones({3})}, {"whole", whole}, {"zero", torch::scalar_tensor(7)}},
            folder / "file");
  detail::SafetensorsFile file(folder / "file");
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t k = 0; k < 5; ++k) {
        for (const std::vector<int64_t>& shape :
             {std::vector<int64_t>{3 - i, 4 - j, 5 - k}, {1, 4 - j, 1}, {3 - i, 1, 5 - k}}) {
          const auto part = file.read_part("whole", {3, 4, 5}, {i, j, k}, shape);
          EXPECT_TRUE(torch::equal(
              part, whole.narrow(0, i, shape[0]).narrow(1, j, shape[1]).narrow(2, k, shape[2])));
        }
      }
    }
  }
  EXPECT_EQ(file.read_part("zero", {}, {}, {}).item<float>(), 7);
  EXPECT_THROW(file.read_part("whole", {3, 4}, {0, 0}, {1, 1}), Error);
  EXPECT_THROW(file.read_part("none", {}, {}, {}), Error);
}

}  // namespace
}  // namespace distributed_utils
