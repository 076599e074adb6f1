// Trainers with --fast=graph. On CPUs a stand-in takes the graph's place and runs each step; all
// that is around a graph is what it is on GPUs.
#include <gmock/gmock.h>

#include <cstdlib>

#include "process/gpus.hpp"
#include "trainer_fixture.hpp"

namespace checker {
namespace {

using testing::Arguments;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::solution;
using testing::TrainerOutcome;

class GraphedTrainers : public testing::TrainerTest {
 protected:
  void SetUp() override {
    setenv(kStandIn, "1", /*overwrite=*/1);
  }                                                 // NOLINT(concurrency-mt-unsafe)
  void TearDown() override { unsetenv(kStandIn); }  // NOLINT(concurrency-mt-unsafe)

  static constexpr const char* kStandIn = "WORLDSIZE_GRAPH_STAND_IN";

  // More steps than the fifteen that are never a graph's.
  TrainerOutcome train(const Arguments& more) const {
    Arguments options{"--epochs", "4", "--checkpoint-every", "10"};
    options.insert(options.end(), more.begin(), more.end());
    auto outcome = run(solution(7), 2, options);
    EXPECT_TRUE(outcome.result.success()) << outcome.everything;
    return outcome;
  }

  std::string model() const { return read_file(output() / "model-final.safetensors"); }
};

TEST_F(GraphedTrainers, TrainAsOthersAlsoWhenMonitoredAndResumed) {
  const auto plain = train({});
  const auto expected = model();
  std::filesystem::remove_all(output());

  const auto graphed = train({"--fast=graph", "--monitor"});
  EXPECT_EQ(graphed.lines, plain.lines);
  EXPECT_EQ(model(), expected);
  EXPECT_THAT(graphed.everything, Not(HasSubstr("no CUDA graph")));
  std::filesystem::remove_all(output());

  train({"--fast=graph", "--max-steps", "25"});
  const auto resumed = train({"--fast=graph", "--resume"});
  EXPECT_EQ(resumed.lines[0].front(), "resumed after step 20");
  EXPECT_EQ(resumed.lines[0].back(), plain.lines[0].back());
  EXPECT_EQ(model(), expected);
}

TEST_F(GraphedTrainers, SayWhereThereIsNone) {
  unsetenv(kStandIn);  // NOLINT(concurrency-mt-unsafe)
  const auto outcome = train({"--fast=graph", "--max-steps", "14"});
  EXPECT_THAT(outcome.everything,
              HasSubstr("--fast: no CUDA graph, because LibTorch finds no usable GPU here"));
}

// With real graphs: on each number of the GPUs here, which may be none.
TEST_F(GraphedTrainers, OnGpusTrainAsOthersToTheLastBit) {
  if (gpus_here() == 0) GTEST_SKIP() << "no GPU here";
  for (size_t ranks = 1; ranks <= gpus_here(); ranks *= 2) {
    for (const char* const precision : {"fp32", "tf32", "bf16"}) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + precision);
      const Arguments options{"--device", "cuda", "--epochs", "8", "--precision", precision};
      const auto train = [&](Arguments more) {
        more.insert(more.begin(), options.begin(), options.end());
        auto outcome = run(solution(7), ranks, more);
        EXPECT_TRUE(outcome.result.success()) << outcome.everything;
        return outcome.lines;
      };
      const auto plain = train(
          {"--fast=loss,optimizer,embedding,attention,norm,relu", "--checkpoint-every", "10"});
      const auto expected = model();
      std::filesystem::remove_all(output());
      EXPECT_EQ(train({"--fast", "--monitor"}), plain);
      EXPECT_EQ(model(), expected);
      std::filesystem::remove_all(output());
      train({"--fast", "--checkpoint-every", "10", "--max-steps", "25"});
      EXPECT_EQ(train({"--fast", "--checkpoint-every", "10", "--resume"})[0].back(),
                plain[0].back());
      EXPECT_EQ(model(), expected);
      std::filesystem::remove_all(output());
    }
  }
}

}  // namespace
}  // namespace checker
