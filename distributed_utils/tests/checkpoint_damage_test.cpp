// Damaged checkpoints: what may happen to each file of one, and that loading names the file.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "damages.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"
#include "same_error.hpp"

namespace distributed_utils {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace fs = std::filesystem;

constexpr const char* kOlder = "step-000000001";
constexpr const char* kNewest = "step-000000002";

/// Two checkpoints of all ranks; no file is like another.
void save_two(const fs::path& directory, int seed = 0) {
  torch::manual_seed(100 * seed + get_rank());
  torch::nn::Linear model(8, 8);
  torch::optim::AdamW optimizer(model->parameters());
  Checkpoints checkpoints(directory);
  for (const int64_t step : {1, 2}) {
    model->forward(torch::ones({1, 8})).sum().backward();
    optimizer.step();
    checkpoints.save(step, *model, optimizer, {}, {{"step", torch::tensor(step)}});
  }
}

std::vector<damages::Damaged> others_contents(const fs::path& directory, const std::string& name) {
  std::vector<damages::Damaged> result = {
      {"gone", std::nullopt},
      {"that of the older one", damages::bytes_of(directory / kOlder / name)}};
  for (const auto& entry : fs::directory_iterator(directory / kNewest)) {
    if (entry.path().filename() == name) continue;
    result.push_back(
        {"in place of it " + entry.path().filename().string(), damages::bytes_of(entry)});
  }
  return result;
}

TEST(DamagedCheckpoint, EachDamageToEachFileIsNoticedAndNamed) {
  ranks::run(3, [] {
    setup();
    const fs::path directory = ranks::shared_folder() / "checkpoints";
    save_two(directory);
    barrier();
    const auto alone = new_group({0});
    if (!alone) return;
    Checkpoints checkpoints(directory, {.group = *alone});
    int noticed = 0;
    for (const std::string name :
         {"model.safetensors", "optimizer.safetensors", "rank-0.safetensors", "rank-1.safetensors",
          "rank-2.safetensors", "manifest.json"}) {
      const fs::path file = directory / kNewest / name;
      const std::string good = damages::bytes_of(file);
      auto all = damages::flips(good, 20);
      for (const auto& more :
           {damages::zeros(good), damages::other_lengths(good), others_contents(directory, name)}) {
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const auto& damaged : all) {
        fs::remove(file);
        if (damaged.bytes) damages::write_bytes(file, *damaged.bytes);
        EXPECT_THAT([&] { checkpoints.load_latest(); },
                    ThrowsMessage<Error>(AllOf(HasSubstr(file.string() + ": "),
                                               HasSubstr(std::string("Fix: remove ") + kNewest +
                                                         "; " + kOlder + " is good"))))
            << damaged.what;
        ++noticed;
      }
      fs::remove(file);
      fs::create_directory(file);
      EXPECT_THAT([&] { checkpoints.load_latest(); },
                  ThrowsMessage<Error>(HasSubstr(file.string() + ": is not a regular file")));
      damages::write_bytes(file, good);
      EXPECT_EQ(checkpoints.load_latest().step(), 2);
      EXPECT_EQ(checkpoints.load(1).step(), 1);
    }
    EXPECT_GE(noticed, 200);
  });
}

TEST(DamagedCheckpoint, AFolderUnderAnothersNameIsNoticed) {
  ranks::run(1, [] {
    setup();
    const fs::path directory = ranks::shared_folder() / "checkpoints";
    save_two(directory);
    fs::rename(directory / kNewest, directory / "step-000000003");
    EXPECT_THAT(
        [&] { Checkpoints(directory).load_latest(); },
        ThrowsMessage<Error>(HasSubstr("is the manifest of another checkpoint, step-000000002")));
  });
}

TEST(DamagedCheckpoint, IsTheSameErrorOnAllRanks) {
  ranks::run(3, [] {
    const World world = setup();
    const fs::path directory = ranks::shared_folder() / "checkpoints";
    save_two(directory);
    barrier();
    const auto damage = [&](const char* step) {
      if (world.rank == 0) damages::write_bytes(directory / step / "rank-2.safetensors", "nothing");
      barrier();
      return error_of_all_ranks([&] { Checkpoints(directory).load_latest(); });
    };
    EXPECT_THAT(damage(kNewest), AllOf(HasSubstr("rank-2.safetensors: has 7 bytes"),
                                       HasSubstr("step-000000001 is good")));
    EXPECT_THAT(damage(kOlder), HasSubstr("no older checkpoint there is good"));
  });
}

TEST(DamagedCheckpoint, RanksThatSeeDifferentDirectoriesDoNotLoad) {
  ranks::run(3, [] {
    const World world = setup();
    const fs::path directory = ranks::shared_folder() / "checkpoints";
    const fs::path other = ranks::shared_folder() / "other";
    save_two(directory);
    save_two(other, 1);
    const fs::path mine = world.rank == 1 ? other : directory;
    EXPECT_THAT(
        error_of_all_ranks([&] { Checkpoints(mine).load_latest(); }),
        AllOf(HasSubstr("rank 1: " + other.string()),
              HasSubstr("differs from the manifest that rank 0"), HasSubstr("that all ranks see")));
    const fs::path missing = world.rank == 2 ? directory / "none" : directory;
    EXPECT_THAT(error_of_all_ranks([&] { Checkpoints(missing).load_latest(); }),
                AllOf(HasSubstr("rank 2: "), HasSubstr("manifest.json: is missing")));
  });
}

}  // namespace
}  // namespace distributed_utils
