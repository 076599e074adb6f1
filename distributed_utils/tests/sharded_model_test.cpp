// Models that are saved in shards, and loaded by other ranks.
#include "distributed_utils/sharded_model.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <numeric>

#include "box_net.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
#include "files/safetensors_format.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace fs = std::filesystem;

constexpr int kBefore = 3;  // steps before the model is saved
constexpr int kAfter = 2;   // and after it

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Loads into a model and an optimizer that have other values, and goes on.
void expect_loaded(const fs::path& folder, const Grid& grid, const Group& group) {
  BoxRun run(get_rank(group), grid);
  run.train(40, 41);
  load_sharded_model(run.net, run.optimizer, folder, group);
  BoxRun serial(0, {});
  serial.train(0, kBefore);
  run.expect_part_of(serial);
  run.train(kBefore, kBefore + kAfter);
  serial.train(kBefore, kBefore + kAfter);
  run.expect_part_of(serial);
}

// One launch for all: what a group of the first ranks saves is loaded by others.
TEST(ShardedModel, SavedByFourIsLoadedByAnyNumberWithoutADifference) {
  ranks::run(6, [] {
    const World world = setup();
    std::map<int, Group> first;
    for (const int size : {1, 2, 3, 4, 6}) {
      std::vector<int> members(size);
      std::iota(members.begin(), members.end(), 0);
      if (const auto group = new_group(members)) first[size] = *group;
    }
    int loaded = 0;
    for (const Grid& saver : {Grid{4, 1}, Grid{2, 2}, Grid{1, 4}}) {
      const auto folder = ranks::shared_folder() / "model";
      if (world.rank < 4) {
        BoxRun run(world.rank, saver);
        run.train(0, kBefore);
        save_sharded_model(run.net, run.optimizer, folder, first.at(4));
      }
      barrier();
      for (const Grid& grid : {Grid{1, 1}, Grid{2, 1}, Grid{1, 2}, Grid{3, 1}, Grid{4, 1},
                               Grid{6, 1}, Grid{3, 2}, Grid{2, 3}}) {
        const auto group = first.find(grid.ranks());
        if (group == first.end()) continue;
        SCOPED_TRACE(std::to_string(grid.rows) + " x " + std::to_string(grid.columns));
        expect_loaded(folder, grid, group->second);
        ++loaded;
      }
      barrier();
    }
    EXPECT_GE(loaded, 9);
    destroy_process_group();
  });
}

TEST(ShardedModel, HasTheNamesAndTheMetadataOfPythons) {
  const ranks::TemporaryFolder folder;
  ranks::run(3, [&] {
    BoxRun run(setup().rank, {3, 1});
    run.train(0, 1);
    save_sharded_model(run.net, run.optimizer, folder / "model");
    save_sharded_model(run.net, folder / "alone/");
    destroy_process_group();
  });
  EXPECT_THAT(names_in(folder / "alone"),
              ElementsAre("manifest.json", "shard-00001-model-00001-of-00001.safetensors",
                          "shard-00002-model-00001-of-00001.safetensors",
                          "shard-00003-model-00001-of-00001.safetensors"));
  EXPECT_EQ(names_in(folder / "model").size(), 7U);
  EXPECT_EQ(names_in(folder.path()).size(), 2U) << "nothing hidden is left";
  const detail::SafetensorsFile file(folder / "model" /
                                     "shard-00003-model-00001-of-00001.safetensors");
  EXPECT_THAT(file.names(), ElementsAre("box.bias", "box.cube", "box.last", "box.weight"));
  EXPECT_EQ(file.metadata(),
            (std::map<std::string, std::string>{
                {"format", "pt"},
                {"DCP_VERSION", "1.0"},
                {"DCP_SHARDING_INFO", R"({"box.bias":{"saved_offsets":[6]},)"
                                      R"("box.cube":{"saved_offsets":[4,0,0]},)"
                                      R"("box.last":{"saved_offsets":[0]},)"
                                      R"("box.weight":{"saved_offsets":[10,0]}})"}}));
}

TEST(ShardedModel, WhatReplicasHoldAlikeIsWrittenOnce) {
  const ranks::TemporaryFolder folder;
  ranks::run(4, [&] {
    const World world = setup();
    BoxRun run(world.rank % 2, {2, 1});
    run.train(0, kBefore);
    save_sharded_model(run.net, run.optimizer, folder.path() / "model");
    expect_loaded(folder.path() / "model", {4, 1}, {});
    destroy_process_group();
  });
  EXPECT_EQ(names_in(folder / "model").size(), 5U);
}

TEST(ShardedModel, OfAModelThatIsNotInPartsIsOneFile) {
  const ranks::TemporaryFolder folder;
  ranks::run(2, [&] {
    const World world = setup();
    torch::nn::Linear saved(3, 2), loaded(3, 2);
    save_sharded_model(*saved, folder / "model");
    const auto before = loaded->weight.clone();
    load_sharded_model(*loaded, folder / "model");
    EXPECT_FALSE(torch::equal(loaded->weight, before));
    if (world.rank == 0) EXPECT_TRUE(torch::equal(loaded->weight, saved->weight));
    destroy_process_group();
  });
  EXPECT_EQ(names_in(folder / "model").size(), 2U);
}

TEST(ShardedModel, IsLoadedFromFilesOfWholeTensors) {
  ranks::run(3, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "model";
    BoxRun serial(0, {}), run(world.rank, {3, 1});
    serial.train(0, 1);
    auto whole = state_dict(serial.net);
    if (world.rank == 0) {
      fs::create_directory(folder);
      const auto weight = whole.extract("box.weight");
      save_file({{"box.weight", weight.mapped()}}, folder / "model-00001-of-00002.safetensors");
      save_file(whole, folder / "model-00002-of-00002.safetensors");
    }
    barrier();
    load_sharded_model(run.net, folder);
    for (const auto& piece : run.net.pieces) {
      const auto all = state_dict(serial.net).at(piece.name);
      EXPECT_TRUE(torch::equal(piece.tensor, CutNet::part(all, piece))) << piece.name;
    }
    destroy_process_group();
  });
}

TEST(ShardedModel, IsGatheredIntoOneFile) {
  const ranks::TemporaryFolder folder;
  ranks::run(4, [&] {
    BoxRun run(setup().rank, {2, 2});
    run.train(0, kBefore);
    save_full_model(run.net, folder / "full.safetensors");
    save0(run.net, folder / "save0.safetensors");
    destroy_process_group();
  });
  ranks::run(1, [&] {
    BoxRun serial(0, {});
    serial.train(0, kBefore);
    save0(serial.net, folder / "serial.safetensors");
    for (const char* name : {"full.safetensors", "save0.safetensors"}) {
      BoxRun read(0, {});
      load(read.net, folder / name);
      for (const auto& [tensor, values] : state_dict(serial.net)) {
        EXPECT_TRUE(torch::equal(state_dict(read.net).at(tensor), values)) << name << tensor;
      }
      EXPECT_EQ(fs::file_size(folder / name), fs::file_size(folder / "serial.safetensors"));
    }
    EXPECT_THAT([&] { save_full_model(serial.net, folder / "none/model"); },
                ThrowsMessage<Error>(HasSubstr("create its folder")));
  });
}

}  // namespace
}  // namespace distributed_utils
