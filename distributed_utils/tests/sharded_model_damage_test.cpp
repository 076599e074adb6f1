// Damaged sharded models: each damage is an Error that names the file, and nothing is changed.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <random>

#include "damages.hpp"
#include "distributed_utils/collectives.hpp"
#include "same_error.hpp"
#include "shard_loader.hpp"

namespace distributed_utils {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

/// Random damages of each file; more by hand: SHARD_DAMAGE_ROUNDS=1000.
int rounds() {
  const char* more = std::getenv("SHARD_DAMAGE_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return more == nullptr ? 20 : std::atoi(more);
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return torch::equal(x, y); });
}

TEST(DamagedShards, EachDamageToEachFileIsNoticedAndNamed) {
  with_saved_shards([](const fs::path& folder) {
    ShardLoader loader(folder);
    EXPECT_EQ(loader.load(), "");
    const auto files = files_in(folder);
    ASSERT_EQ(files.size(), 7U);
    for (const auto& file : files) {
      const std::string good = damages::bytes_of(file);
      auto all = damages::flips(good, rounds());
      for (const auto& more : {damages::zeros(good), damages::other_lengths(good)}) {
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const auto& other : files) {
        if (other != file)
          all.push_back({"in place of it " + other.string(), damages::bytes_of(other)});
      }
      if (file.extension() != ".json") all.push_back({"gone", std::nullopt});
      for (const auto& damaged : all) {
        fs::remove(file);
        if (damaged.bytes) damages::write_bytes(file, *damaged.bytes);
        EXPECT_THAT(loader.load(), HasSubstr(file.string() + ": ")) << damaged.what;
      }
      fs::remove(file);
      fs::create_directory(file);
      EXPECT_THAT(loader.load(), HasSubstr(file.string() + ": is not a regular file"));
      damages::write_bytes(file, good);
    }
    const auto copy = folder / "shard-00004-model-00001-of-00001.safetensors";
    fs::copy_file(files[1], copy);
    EXPECT_THAT(loader.load(),
                HasSubstr(copy.string() + ": is not named in the folder's manifest"));
    fs::remove(copy);
    EXPECT_EQ(loader.load(), "");
    EXPECT_GE(loader.tried, 350);
  });
}

TEST(DamagedShards, IsTheSameErrorOnAllRanksWhateverTheyNeed) {
  ranks::run(3, [] {
    const World world = setup();
    const auto folder = ranks::shared_folder() / "model";
    BoxRun run(world.rank, {3, 1});
    save_sharded_model(run.net, folder);
    for (const char* number : {"1", "2", "3"}) {
      const auto file =
          folder / ("shard-0000" + std::string(number) + "-model-00001-of-00001.safetensors");
      const std::string good = damages::bytes_of(file);
      std::string bad = good;
      bad[good.size() - 2] ^= 4;
      barrier();
      if (world.rank == 0) damages::write_bytes(file, bad);
      barrier();
      EXPECT_THAT(error_of_all_ranks([&] { load_sharded_model(run.net, folder); }),
                  HasSubstr(file.string() + ": is damaged"));
      if (world.rank == 0) damages::write_bytes(file, good);
      barrier();
    }
    EXPECT_EQ(error_of_all_ranks([&] { load_sharded_model(run.net, folder); }), "");
  });
}

TEST(DamagedShards, WithoutAManifestRandomDamageOfHeadersIsRefusedOrChangesNothing) {
  with_saved_shards([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    ShardLoader loader(folder);
    EXPECT_EQ(loader.load(), "");
    const auto good_values = loader.loaded();
    std::mt19937_64 random(5);
    int refused = 0;
    for (const auto& file : files_in(folder)) {
      const std::string good = damages::bytes_of(file);
      uint64_t header = 0;
      std::memcpy(&header, good.data(), sizeof header);
      for (int i = 0; i < 5 * rounds(); ++i) {
        std::string bytes = good;
        const size_t place = random() % (8 + header);
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
        damages::write_bytes(file, bytes);
        const auto error = loader.load();
        if (error.empty()) {
          EXPECT_TRUE(same(loader.loaded(), good_values)) << file << " at " << place;
        } else {
          EXPECT_THAT(error, HasSubstr(folder.string()));
          ++refused;
        }
      }
      damages::write_bytes(file, good);
    }
    EXPECT_GT(refused, 20 * rounds());
  });
}

TEST(DamagedShards, WhatAnotherSaveHasLeftIsNoticed) {
  with_saved_shards([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    ShardLoader loader(folder);
    const auto of = [&](int rank) {
      return folder / ("shard-0000" + std::to_string(rank) + "-model-00001-of-00001.safetensors");
    };
    fs::copy_file(of(3), of(4));
    EXPECT_THAT(loader.load(), HasSubstr("holds elements of 'box.bias' that shard-00003-model"));
    fs::remove(of(4));
    fs::rename(of(3), of(5));
    EXPECT_EQ(loader.load(), "") << "names of files mean nothing";
    fs::remove(of(5));
    EXPECT_THAT(loader.load(),
                AllOf(HasSubstr("has shape [10, 6] in its files, but [13, 6] in the model"),
                      HasSubstr("bring back the ")));
  });
}

}  // namespace
}  // namespace distributed_utils
