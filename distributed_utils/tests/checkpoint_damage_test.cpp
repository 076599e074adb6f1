// Damaged checkpoints: what may happen to each file of one, and that loading names the file.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <random>

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

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const fs::path& file, const std::string& bytes) {
  fs::remove_all(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

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

/// A file after something happened to it; nullopt: it is gone.
struct Damaged {
  std::string what;
  std::optional<std::string> bytes;
};

std::vector<Damaged> flips(const std::string& good) {
  const size_t size = good.size();
  std::vector<size_t> places = {0, 1, 7, 8, 9, size / 4, size / 2, size - 65, size - 2, size - 1};
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) places.push_back(random() % size);
  std::vector<Damaged> result;
  for (const size_t place : places) {
    std::string bytes = good;
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << place % 8));
    result.push_back({"a bit flipped at " + std::to_string(place), bytes});
  }
  return result;
}

std::vector<Damaged> zeros(const std::string& good) {
  std::vector<Damaged> result = {{"all zeros", std::string(good.size(), '\0')}};
  for (const size_t place : {size_t{0}, size_t{8}, good.size() / 2, good.size() - 16}) {
    std::string bytes = good;
    bytes.replace(place, 16, 16, '\0');
    if (bytes != good) result.push_back({"zeros at " + std::to_string(place), bytes});
  }
  return result;
}

std::vector<Damaged> other_lengths(const std::string& good) {
  std::vector<Damaged> result;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, good.size() / 2, good.size() - 1}) {
    result.push_back({"cut to " + std::to_string(size), good.substr(0, size)});
  }
  for (const std::string& tail :
       {std::string(1, '\0'), std::string("\n"), std::string(4096, '\0'), good}) {
    result.push_back({std::to_string(tail.size()) + " bytes behind it", good + tail});
  }
  return result;
}

std::vector<Damaged> others_contents(const fs::path& directory, const std::string& name) {
  std::vector<Damaged> result = {{"gone", std::nullopt},
                                 {"that of the older one", content(directory / kOlder / name)}};
  for (const auto& entry : fs::directory_iterator(directory / kNewest)) {
    if (entry.path().filename() == name) continue;
    result.push_back({"in place of it " + entry.path().filename().string(), content(entry)});
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
      const std::string good = content(file);
      auto all = flips(good);
      for (const auto& more :
           {zeros(good), other_lengths(good), others_contents(directory, name)}) {
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const auto& damaged : all) {
        fs::remove(file);
        if (damaged.bytes) write(file, *damaged.bytes);
        EXPECT_THAT([&] { checkpoints.load_latest(); },
                    ThrowsMessage<Error>(AllOf(HasSubstr(file.string() + ": "),
                                               HasSubstr(std::string("Mend: remove ") + kNewest +
                                                         "; " + kOlder + " is good"))))
            << damaged.what;
        ++noticed;
      }
      fs::remove(file);
      fs::create_directory(file);
      EXPECT_THAT([&] { checkpoints.load_latest(); },
                  ThrowsMessage<Error>(HasSubstr(file.string() + ": is no regular file")));
      write(file, good);
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
      if (world.rank == 0) write(directory / step / "rank-2.safetensors", "nothing");
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
    EXPECT_THAT(error_of_all_ranks([&] { Checkpoints(mine).load_latest(); }),
                AllOf(HasSubstr("rank 1: " + other.string()),
                      HasSubstr("not the manifest that rank 0"), HasSubstr("that all ranks see")));
    const fs::path missing = world.rank == 2 ? directory / "none" : directory;
    EXPECT_THAT(error_of_all_ranks([&] { Checkpoints(missing).load_latest(); }),
                AllOf(HasSubstr("rank 2: "), HasSubstr("manifest.json: is missing")));
  });
}

}  // namespace
}  // namespace distributed_utils
