#include "bench/bench.hpp"

#include <gmock/gmock.h>

#include <pugixml.hpp>

#include "monitor_runs.hpp"
#include "support/error.hpp"

namespace checker::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result timed(const std::string& label, bool ours, size_t ranks, double step_ms,
             std::optional<double> all_reduce_ms = {}) {
  return {.what = {label, ours, ranks, {}},
          .timing = Timing{.step_ms = step_ms,
                           .least_ms = step_ms - 0.01,
                           .most_ms = step_ms + 0.02,
                           .tokens_per_s = 4096e3 * double(ranks) / step_ms,
                           .limit_ms = ours ? std::optional(step_ms / 2) : std::nullopt,
                           .all_reduce_ms = all_reduce_ms},
          .failure = {}};
}

Result failed(const std::string& label) {
  return {.what = {label, false, 1, {}}, .timing = {}, .failure = "no torch"};
}

std::vector<size_t> ranks_of(const std::vector<Case>& all) {
  std::vector<size_t> ranks;
  for (const auto& what : all) {
    if (what.ours && what.nodes == 1 && what.label == all.front().label)
      ranks.push_back(what.ranks);
  }
  return ranks;
}

TEST(Cases, OnGpusRanksDouble) {
  EXPECT_THAT(ranks_of(cases(true, 1, false)), ElementsAre(1));
  EXPECT_THAT(ranks_of(cases(true, 4, false)), ElementsAre(1, 2, 4));
  EXPECT_THAT(ranks_of(cases(true, 6, true)), ElementsAre(1, 2, 4, 6));
}

TEST(Cases, TheMostGpusAreTakenForTwoNodesToo) {
  const auto on_nodes = [](size_t ranks) {
    auto all = cases(true, ranks, true);
    std::erase_if(all, [](const Case& what) { return what.nodes == 1; });
    return all;
  };
  EXPECT_TRUE(on_nodes(1).empty());
  EXPECT_TRUE(on_nodes(3).empty());
  ASSERT_EQ(on_nodes(4).size(), 4u);
  for (const auto& what : on_nodes(4)) {
    EXPECT_EQ(what.ranks, 4u);
    EXPECT_THAT(what.arguments, Contains("--nodes=2"));
  }
}

TEST(Cases, EachOfOursHasAPeerBesideIt) {
  for (const bool gpus : {true, false}) {
    const auto all = cases(gpus, 2, true);
    for (const auto& what : all) {
      if (what.label.ends_with("--fast") || !what.ours || what.nodes > 1 || what.trainer) continue;
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Case& other) {
        return !other.ours && other.label == what.label && other.ranks == what.ranks;
      })) << what.label;
    }
  }
}

TEST(Cases, TheTrainerIsTimedOnEveryNumberOfRanks) {
  for (const bool gpus : {true, false}) {
    const auto all = cases(gpus, 2, true);
    for (const size_t ranks : {1U, 2U}) {
      EXPECT_TRUE(std::ranges::any_of(
          all, [&](const Case& what) { return what.trainer && what.ranks == ranks; }));
    }
  }
}

TEST(Timings, OfATrainerAreOfItsLaterSteps) {
  auto run = checker::testing::healthy_run({.ranks = 2, .steps = 210, .step = 0.1});
  for (size_t i = 0; i < 50; ++i) run.ranks[0].steps[i].end += 1;  // warm-up
  for (size_t i = 150; i < 200; ++i) run.ranks[0].steps[i].end += 0.1;
  const auto timing = timing_of(run);
  EXPECT_NEAR(timing.step_ms, 100, 1e-6);
  EXPECT_NEAR(timing.least_ms, 100, 1e-6);
  EXPECT_NEAR(timing.most_ms, 200, 1e-6);
  EXPECT_NEAR(timing.tokens_per_s, 2000 / 0.1, 1e-3);
  run.ranks[0].steps.resize(99);
  EXPECT_THROW(timing_of(run), Error);
}

TEST(Cases, OnCpusThreadsAreSaid) {
  const auto all = cases(false, 2, true);
  ASSERT_EQ(all.size(), 9u);
  EXPECT_THAT(all[3].arguments, Contains("--threads=2"));
  EXPECT_EQ(all[6].ranks, 2u);
  EXPECT_THAT(all[6].arguments, Contains("--threads=1"));
  EXPECT_EQ(cases(false, 1, true).size(), 6u);
}

TEST(Timings, AreReadFromBothPrograms) {
  const auto ours = timing_of(R"({"context": {}, "benchmarks": [{"step_ms": 2.5, "least_ms": 2,
      "most_ms": 3, "tokens_per_s": 10, "limit_ms": 1, "all_reduce_ms": 0.25}]})",
                              true);
  EXPECT_EQ(ours.step_ms, 2.5);
  EXPECT_EQ(ours.limit_ms, 1);
  EXPECT_EQ(ours.all_reduce_ms, 0.25);
  const auto peers = timing_of(
      R"({"name": "fp32", "step_ms": 4, "least_ms": 3, "most_ms": 5, "tokens_per_s": 7})", false);
  EXPECT_EQ(peers.most_ms, 5);
  EXPECT_EQ(peers.limit_ms, std::nullopt);
  EXPECT_THROW(timing_of("", true), Error);
  EXPECT_THROW(timing_of(R"({"step_ms": 4})", false), Error);
}

TEST(Table, IsAlignedAndSaysWhatFailed) {
  const std::vector<Result> results{timed("fp32", true, 1, 10), timed("fp32", true, 2, 12.5),
                                    timed("fp32", false, 1, 11), failed("bf16")};
  const auto lines = table(results, false);
  EXPECT_THAT(
      lines,
      ElementsAre("step  by      ranks         ms (least-most)  tokens/s  of limit  speed-up",
                  "fp32  C++         1   10.000 (9.990-10.020)    409600      50 %",
                  "fp32  C++         2  12.500 (12.490-12.520)    655360      50 %      1.60",
                  "fp32  Python      1  11.000 (10.990-11.020)    372364",
                  "bf16  Python      1                  failed"));
  EXPECT_EQ(table(results, true)[3],
            "| fp32 | C++ | 2 | 12.500 (12.490-12.520) | 655360 | 50 % | 1.60 |");
  auto on_nodes = timed("fp32", true, 2, 50);
  on_nodes.what.nodes = 2;
  EXPECT_THAT(table({on_nodes}, true)[2], HasSubstr("| 2 on 2 nodes |"));
}

TEST(Model, LiesBetweenHiddenAndExposedTraffic) {
  const auto bounds = model(*timed("", true, 1, 2).timing, *timed("", true, 4, 2.2, 0.5).timing);
  EXPECT_EQ(bounds.hidden_ms, 2);
  EXPECT_EQ(bounds.exposed_ms, 2.5);
  EXPECT_EQ(model(*timed("", true, 1, 2).timing, *timed("", true, 4, 9, 8).timing).hidden_ms, 8);
}

size_t count(const std::string& svg, const std::string& element) {
  pugi::xml_document page;
  EXPECT_TRUE(page.load_string(svg.c_str()));
  return page.select_nodes(("//" + element).c_str()).size();
}

TEST(Plots, ShowWhatWasTimed) {
  const std::vector<Result> results{
      timed("fp32 & <all>", true, 1, 10), timed("fp32 & <all>", true, 2, 12, 1),
      timed("fp32 & <all>", true, 4, 13, 2), timed("fp32 & <all>", false, 1, 11), failed("bf16")};
  EXPECT_EQ(count(bars(results), "rect"), 2u);
  EXPECT_EQ(count(bars(results), "line"), 1u);  // the limit of ours
  // Three dots of one series, one of the other, and one in the legend.
  EXPECT_EQ(count(scaling(results), "circle"), 5u);
  // Two axes, the ideal, two stretches of the series, two bands of the model.
  EXPECT_EQ(count(scaling(results), "line"), 7u);
  EXPECT_THAT(scaling(results), HasSubstr("C++ fp32 &amp; &lt;all&gt;"));
  // Ranks on two nodes are a cross of two lines, on no line of the series.
  auto with_nodes = results;
  with_nodes.push_back(timed("fp32 & <all>", true, 4, 40, 30));
  with_nodes.back().what.nodes = 2;
  EXPECT_EQ(count(scaling(with_nodes), "line"), 9u);
  EXPECT_EQ(count(scaling(with_nodes), "circle"), 5u);
  EXPECT_EQ(count(scaling({}), "circle"), 0u);
}

}  // namespace
}  // namespace checker::bench
