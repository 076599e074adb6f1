#include "distributed_utils/sampler.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <set>

#include "distributed_utils/error.hpp"
#include "oracle.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Indices = std::vector<size_t>;

DistributedSampler sampler(size_t size, int replicas, int rank, DistributedSamplerOptions options) {
  options.num_replicas = replicas;
  options.rank = rank;
  return DistributedSampler(size, options);
}

/// One epoch's indices, taken in uneven batches.
Indices drain(DistributedSampler& from) {
  from.reset();
  Indices all;
  for (size_t batch = 1; const auto indices = from.next(batch); batch = batch % 5 + 1) {
    EXPECT_LE(indices->size(), batch);
    all.insert(all.end(), indices->begin(), indices->end());
  }
  return all;
}

std::vector<Indices> drain_all(size_t size, int replicas, const DistributedSamplerOptions& options,
                               uint64_t epoch = 0) {
  std::vector<Indices> result;
  for (int rank = 0; rank < replicas; ++rank) {
    auto of_rank = sampler(size, replicas, rank, options);
    of_rank.set_epoch(epoch);
    result.push_back(drain(of_rank));
    EXPECT_EQ(result.back().size(), of_rank.size());
  }
  return result;
}

TEST(DistributedSampler, DealsOutStridedWithoutShuffle) {
  EXPECT_EQ(drain_all(7, 3, {.shuffle = false, .pad = false}),
            (std::vector<Indices>{{0, 3, 6}, {1, 4}, {2, 5}}));
  EXPECT_EQ(drain_all(7, 3, {.shuffle = false}),
            (std::vector<Indices>{{0, 3, 6}, {1, 4, 0}, {2, 5, 1}}));
  EXPECT_EQ(drain_all(7, 3, {.shuffle = false, .drop_last = true}),
            (std::vector<Indices>{{0, 3}, {1, 4}, {2, 5}}));
}

TEST(DistributedSampler, UnpaddedRanksCoverEachSampleOnce) {
  for (const size_t size : {0, 1, 2, 3, 64, 101}) {
    for (const int replicas : {1, 2, 3, 7}) {
      std::multiset<size_t> seen;
      for (const auto& indices : drain_all(size, replicas, {.seed = 3, .pad = false}, 5)) {
        seen.insert(indices.begin(), indices.end());
      }
      EXPECT_EQ(seen.size(), size);
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), size);
    }
  }
}

TEST(DistributedSampler, ASmallDatasetIsPaddedByRepeatingIt) {
  for (const auto& indices : drain_all(2, 5, {.shuffle = false})) EXPECT_EQ(indices.size(), 1U);
}

TEST(DistributedSampler, EpochAndSeedChangeTheOrderAndNothingElse) {
  const auto first = drain_all(50, 2, {.seed = 1}, 0);
  EXPECT_EQ(drain_all(50, 2, {.seed = 1}, 0), first);
  EXPECT_NE(drain_all(50, 2, {.seed = 1}, 1), first);
  EXPECT_EQ(drain_all(50, 2, {.seed = 0}, 1), first);  // seed + epoch, as in Python
}

TEST(DistributedSampler, TouchesNoGlobalGenerator) {
  torch::manual_seed(7);
  const auto before = torch::rand({3});
  torch::manual_seed(7);
  drain_all(50, 2, {.seed = 1});
  EXPECT_TRUE(torch::equal(torch::rand({3}), before));
}

struct Echo : torch::data::datasets::BatchDataset<Echo, Indices> {
  Indices get_batch(c10::ArrayRef<size_t> indices) override { return indices.vec(); }
  std::optional<size_t> size() const override { return 30; }
};

Indices one_pass(auto& loader) {
  Indices all;
  for (const auto& batch : *loader) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

// pytorch/pytorch#73141: with torch's own samplers this does not work.
TEST(DistributedSampler, SetEpochReachesTheLoadersCopy) {
  auto kept = sampler(30, 2, 1, {.seed = 9});
  const auto loader = torch::data::make_data_loader(Echo{}, kept, 4);
  const auto epoch = [&](uint64_t number) {
    kept.set_epoch(number);
    return one_pass(loader);
  };
  const auto zero = epoch(0);
  EXPECT_EQ(zero.size(), 15U);
  EXPECT_NE(epoch(1), zero);
  EXPECT_EQ(epoch(0), zero);
}

Indices rest_of(DistributedSampler& from) {
  Indices rest;
  while (const auto indices = from.next(3))
    rest.insert(rest.end(), indices->begin(), indices->end());
  return rest;
}

const std::vector<DistributedSamplerOptions> kEveryTail = {
    {.seed = 8}, {.seed = 8, .drop_last = true}, {.seed = 8, .pad = false}, {.shuffle = false}};

TEST(DistributedSampler, SkipLeavesWhatThePassWouldStillHaveDealt) {
  for (const auto& options : kEveryTail) {
    for (const int replicas : {1, 2, 3, 5}) {
      for (const size_t taken : {0, 1, 4, 7}) {
        for (int rank = 0; rank < replicas; ++rank) {
          auto whole = sampler(36, replicas, rank, options);
          whole.set_epoch(2);
          whole.reset();
          if (taken > 0) whole.next(taken);
          auto resumed = sampler(36, replicas, rank, options);
          resumed.skip(taken * replicas);
          resumed.set_epoch(2);
          EXPECT_EQ(drain(resumed), rest_of(whole))
              << replicas << " ranks, " << taken << " taken, rank " << rank;
        }
      }
    }
  }
}

TEST(DistributedSampler, SkipDealsTheRestToOtherNumbersOfRanks) {
  const auto epoch = drain_all(101, 1, {.seed = 4}, 3)[0];
  for (const size_t taken : {0, 30, 99, 101, 102}) {
    for (const int replicas : {1, 2, 3, 7}) {
      const Indices left(epoch.begin() + static_cast<long>(std::min<size_t>(taken, 101)),
                         epoch.end());
      for (const auto& options : kEveryTail) {
        if (!options.shuffle) continue;
        auto of_seed = options;
        of_seed.seed = 4;
        std::multiset<size_t> dealt;
        for (int rank = 0; rank < replicas; ++rank) {
          auto of_rank = sampler(101, replicas, rank, of_seed);
          of_rank.set_epoch(3);
          of_rank.skip(taken);
          for (const size_t index : drain(of_rank)) dealt.insert(index);
        }
        // A padded tail begins the epoch's order again, a dropped one lacks its end.
        const size_t whole = left.size() / replicas * replicas;
        const size_t padded = (left.size() + replicas - 1) / replicas * replicas;
        Indices expected(left);
        if (options.drop_last) expected.resize(whole);
        if (!options.drop_last && options.pad) {
          for (size_t i = 0; expected.size() < padded; ++i) expected.push_back(epoch[i]);
        }
        EXPECT_EQ(dealt, std::multiset<size_t>(expected.begin(), expected.end()))
            << taken << " taken, " << replicas << " ranks";
      }
    }
  }
}

TEST(DistributedSampler, SkipReachesTheLoadersCopyForOnePass) {
  auto kept = sampler(30, 2, 1, {.seed = 9});
  const auto loader = torch::data::make_data_loader(Echo{}, kept, 4);
  const Indices whole = one_pass(loader);
  kept.skip(8);
  EXPECT_EQ(one_pass(loader), Indices(whole.begin() + 4, whole.end()));
  EXPECT_EQ(one_pass(loader), whole);
}

TEST(DistributedSampler, ResumesWithinAnEpoch) {
  auto original = sampler(40, 3, 2, {.seed = 4});
  original.set_epoch(6);
  original.skip(3);
  original.reset();
  original.next(5);
  torch::serialize::OutputArchive out;
  original.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  auto resumed = sampler(40, 3, 2, {.seed = 4});
  resumed.load(in);
  EXPECT_EQ(resumed.next(100), original.next(100));
}

TEST(DistributedSampler, RefusesWhatContradictsItself) {
  EXPECT_THAT([] { DistributedSampler(10); }, ThrowsMessage<Error>(HasSubstr("setup()")));
  EXPECT_THAT([] { DistributedSampler(10, {.rank = 1}); }, ThrowsMessage<Error>(HasSubstr("both")));
  EXPECT_THAT([] { sampler(10, 2, 2, {}); }, ThrowsMessage<Error>(HasSubstr("rank 2 of 2")));
  EXPECT_THAT([] { sampler(10, 0, 0, {}); }, ThrowsMessage<Error>(HasSubstr("rank 0 of 0")));
}

TEST(DistributedSampler, AgreesWithPythons) {
  const auto python = oracle::json("sampler.py");
  if (!python) GTEST_SKIP() << oracle::kMissing;
  int compared = 0;
  for (const auto& entry : *python) {
    const DistributedSamplerOptions options = {
        .shuffle = entry["shuffle"], .seed = entry["seed"], .drop_last = entry["drop_last"]};
    auto ours = sampler(entry["size"], entry["num_replicas"], entry["rank"], options);
    ours.set_epoch(entry["epoch"]);
    EXPECT_EQ(drain(ours), entry["indices"].get<Indices>()) << entry.dump();
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace distributed_utils
