// Each rule sees a run that has exactly its fault, and the one beside it that has not.
#include "monitor/rules.hpp"

#include <gmock/gmock.h>

#include "monitor_runs.hpp"

namespace checker::monitor {
namespace {

using checker::testing::healthy_run;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> ids_of(const Run& run) {
  std::vector<std::string> ids;
  for (const auto& sentence : limits_of(run, figures_of(run))) ids.push_back(sentence.id);
  return ids;
}

std::string first_of(const Run& run) {
  const auto sentence = limits_of(run, figures_of(run)).front();
  return sentence.what + " " + sentence.advice;
}

// Moves time from one phase of each step of a rank to another.
void move_time(RankRecord& record, size_t from, size_t to, double seconds) {
  for (auto& step : record.steps) {
    step.phases[from] -= static_cast<float>(seconds);
    step.phases[to] += static_cast<float>(seconds);
  }
}

TEST(MonitorRules, HealthyRunsAreCalledSo) {
  EXPECT_THAT(ids_of(healthy_run()), ElementsAre("nothing_stands_out"));
  EXPECT_THAT(ids_of(healthy_run({.ranks = 1})), ElementsAre("nothing_stands_out"));
  EXPECT_THAT(ids_of(healthy_run({.ranks = 8})), ElementsAre("nothing_stands_out"));
  EXPECT_THAT(ids_of(healthy_run({.ranks = 4, .gpus = true})), ElementsAre("nothing_stands_out"));
  EXPECT_THAT(first_of(healthy_run()), HasSubstr("forward and backward take 85 % of a step"));
}

TEST(MonitorRules, IdleGpus) {
  auto run = healthy_run({.ranks = 4, .gpus = true});
  run.ranks.resize(1);
  run.ranks[0].groups.clear();
  run.ranks[0].traffic.clear();
  run.ranks[0].collectives.clear();
  run.world_size = 1;
  for (auto& at : run.ranks[0].gpus) {
    if (at.sample.number != 0) at.sample.utilisation = 0;
  }
  EXPECT_THAT(ids_of(run), ElementsAre("gpus_idle"));
  EXPECT_THAT(first_of(run), AllOf(HasSubstr("3 of 4 GPUs idle"), HasSubstr("1 rank"),
                                   HasSubstr("a rank for each GPU")));
}

TEST(MonitorRules, GpusShortOfWork) {
  auto run = healthy_run({.ranks = 2, .gpus = true});
  for (auto& at : run.ranks[0].gpus) at.sample.utilisation = 23;
  EXPECT_THAT(ids_of(run), ElementsAre("gpus_short_of_work"));
  EXPECT_THAT(first_of(run), HasSubstr("busy 23 % of the time"));
  for (auto& at : run.ranks[0].gpus) at.sample.utilisation = 80;
  EXPECT_THAT(ids_of(run), ElementsAre("nothing_stands_out"));
}

TEST(MonitorRules, RepeatsOfAGraphHaveNoPhases) {
  auto run = healthy_run({.ranks = 1, .steps = 200, .gpus = true});
  for (size_t i = 20; i < 200; ++i) run.ranks[0].steps[i].phases = {0.004F, 0, 0, 0};
  const auto figures = figures_of(run);
  EXPECT_EQ(figures.replays, 180);
  EXPECT_NEAR(figures.ranks[0].shares[0], 0.041, 1e-4);  // of all steps
  EXPECT_NEAR(figures.ranks[0].shares[2], 0.55, 1e-4);   // of the first 20
  EXPECT_THAT(first_of(run), HasSubstr("one step after the other, as a CUDA graph"));
  // How busy the GPU was is known better than by samples twice a second.
  for (auto& at : run.ranks[0].gpus) at.sample.utilisation = 23;
  EXPECT_THAT(ids_of(run), ElementsAre("nothing_stands_out"));
  auto eager = healthy_run({.ranks = 1, .gpus = true});
  for (auto& at : eager.ranks[0].gpus) at.sample.utilisation = 23;
  EXPECT_THAT(first_of(eager), HasSubstr("--fast turns most steps into one CUDA graph"));
}

// Loader workers help little where each epoch is two steps long.
TEST(MonitorRules, WaitsForTheFirstBatchOfShortEpochs) {
  const auto with_epochs_of = [](size_t steps_an_epoch) {
    auto run = healthy_run({.ranks = 1});
    for (size_t i = 0; i < run.ranks[0].steps.size(); i += steps_an_epoch) {
      auto& step = run.ranks[0].steps[i];
      step.phases[0] += 0.06F;
      step.phases[2] -= 0.06F;
      if (i > 0)
        run.ranks[0].spans.push_back({step.begin - 0.001, step.begin, 0, Phase::evaluation});
    }
    return run;
  };
  EXPECT_THAT(first_of(with_epochs_of(2)),
              AllOf(HasSubstr("wait 35 % of a step, mostly for the first batch of an epoch"),
                    HasSubstr("An epoch has 2 steps")));
  auto slow = with_epochs_of(20);
  move_time(slow.ranks[0], 1, 0, 0.025);
  EXPECT_THAT(first_of(slow), HasSubstr("loader workers"));
}

TEST(MonitorRules, WaitsForData) {
  auto run = healthy_run({.ranks = 1});
  move_time(run.ranks[0], 1, 0, 0.025);
  EXPECT_THAT(ids_of(run), ElementsAre("waits_for_data"));
  EXPECT_THAT(first_of(run), HasSubstr("wait 30 % of a step"));
}

TEST(MonitorRules, WaitsForCollectives) {
  auto run = healthy_run({.ranks = 2});
  for (auto& record : run.ranks) {
    // The last all-reduce begins long before the backward pass ends.
    for (auto& call : record.collectives) call.begin -= 0.035;
  }
  EXPECT_THAT(ids_of(run), ElementsAre("waits_for_collectives"));
  EXPECT_THAT(first_of(run), HasSubstr("45 % of a step"));
}

TEST(MonitorRules, SlowOptimizer) {
  auto run = healthy_run({.ranks = 1});
  move_time(run.ranks[0], 2, 3, 0.03);
  EXPECT_THAT(ids_of(run), ElementsAre("slow_optimizer"));
  EXPECT_THAT(first_of(run), HasSubstr("40 % of a step"));
}

TEST(MonitorRules, TimeBesideTheSteps) {
  const auto spoilt = [](Phase phase, double seconds) {
    auto run = healthy_run({.ranks = 2});
    for (auto& record : run.ranks) {
      record.spans.push_back({record.last, record.last + seconds, 200, phase});
      record.last += seconds;
    }
    return run;
  };
  EXPECT_THAT(ids_of(spoilt(Phase::evaluation, 14)), ElementsAre("long_evaluation"));
  EXPECT_THAT(first_of(spoilt(Phase::evaluation, 14)), HasSubstr("40 % of the run"));
  EXPECT_THAT(ids_of(spoilt(Phase::checkpoint, 4)), ElementsAre("many_checkpoints"));
  auto run = healthy_run({.ranks = 2});
  for (auto& record : run.ranks) shift(record, 19);
  EXPECT_THAT(ids_of(run), ElementsAre("long_start"));
  EXPECT_THAT(first_of(run), HasSubstr("after 20.0 s, 50 % of the run"));
}

TEST(MonitorRules, FullMemory) {
  auto run = healthy_run();
  run.ranks[0].node.back().sample.available = 100 << 20;
  EXPECT_THAT(ids_of(run), ElementsAre("memory_nearly_full"));
  EXPECT_THAT(first_of(run), HasSubstr("100 MiB of 16.0 GiB"));
  auto gpus = healthy_run({.ranks = 2, .gpus = true});
  gpus.ranks[0].gpus.back().sample.used = 79ULL << 30;
  EXPECT_THAT(ids_of(gpus), ElementsAre("gpu_memory_nearly_full"));
}

TEST(MonitorRules, OtherProgramsOnTheSameCpus) {
  auto run = healthy_run({.ranks = 2});
  for (auto& at : run.ranks[0].node) at.sample.busy = at.sample.ticks / 100 * 98;
  EXPECT_THAT(ids_of(run), ElementsAre("other_programs"));
  EXPECT_THAT(first_of(run), HasSubstr("Other programs keep 1.9 of the 4 CPUs of node1 busy"));
  // Two more ranks, and it is the run itself that keeps them busy.
  auto full = healthy_run({.ranks = 4});
  for (auto& at : full.ranks[0].node) at.sample.busy = at.sample.ticks / 100 * 98;
  EXPECT_THAT(ids_of(full), ElementsAre("nothing_stands_out"));
}

TEST(MonitorRules, Straggler) {
  auto run = healthy_run({.ranks = 4});
  for (auto& call : run.ranks[2].collectives) call.begin += 0.04;
  for (auto& record : run.ranks) {
    for (auto& call : record.collectives) call.end += 0.04;
    // The backward passes end with them: only lateness is wrong here.
    for (auto& span : record.spans) {
      if (span.phase == Phase::backward) span.end = span.begin + 0.055;
    }
  }
  const auto ids = ids_of(run);
  EXPECT_THAT(ids, ElementsAre("straggler"));
  EXPECT_THAT(first_of(run), AllOf(HasSubstr("Rank 2 arrives 40."), HasSubstr("100 %")));
}

// Hosts run ahead of their GPUs, one more than another: what tells is how long kernels waited.
TEST(MonitorRules, AStragglerOnGpusIsTheOneWhoseCollectivesAreShort) {
  auto run = healthy_run({.ranks = 4, .gpus = true});
  for (auto& record : run.ranks) {
    const double waits = record.rank() == 2 ? 0.001 : 0.031;
    for (auto& call : record.collectives) {
      call.on_gpu = waits;
      call.begin = call.end - waits;
    }
  }
  EXPECT_THAT(ids_of(run), ElementsAre("straggler"));
  EXPECT_THAT(first_of(run), AllOf(HasSubstr("Rank 2 arrives 30."), HasSubstr("100 %")));
  for (const double runs : {0.001, 0.0}) {  // alike everywhere, or not known
    for (auto& record : run.ranks) {
      for (auto& call : record.collectives) {
        call.on_gpu = runs;
        call.begin = call.end - (record.rank() == 2 ? 0.001 : 0.031);
      }
    }
    EXPECT_THAT(ids_of(run), ElementsAre("nothing_stands_out"));
    EXPECT_EQ(figures_of(run).ranks[0].collectives.has_value(), runs > 0);
  }
}

TEST(MonitorRules, ALateCallNowAndThenIsNoStraggler) {
  auto run = healthy_run({.ranks = 4});
  for (size_t i = 0; i < run.ranks[2].collectives.size(); i += 5) {
    run.ranks[2].collectives[i].begin += 0.04;
  }
  EXPECT_THAT(ids_of(run), ElementsAre("nothing_stands_out"));
}

TEST(MonitorRules, RanksThatExchangeNothing) {
  auto run = healthy_run({.ranks = 2});
  for (auto& record : run.ranks) {
    record.collectives.clear();
    record.traffic.clear();
  }
  EXPECT_THAT(ids_of(run), ElementsAre("nothing_exchanged"));
  EXPECT_THAT(first_of(run), HasSubstr("each trains its own model"));
}

TEST(MonitorRules, UnequalShares) {
  auto run = healthy_run({.ranks = 3});
  for (auto& step : run.ranks[1].steps) step.targets = 700;
  EXPECT_THAT(ids_of(run), ElementsAre("unequal_shares"));
  EXPECT_THAT(first_of(run), HasSubstr("Rank 1 gets 30 % fewer"));
}

TEST(MonitorRules, ALossThatIsNoNumber) {
  auto run = healthy_run({.ranks = 2});
  for (size_t i = 120; i < 200; ++i) {
    run.ranks[1].steps[i].loss = std::numeric_limits<double>::infinity();
  }
  EXPECT_THAT(ids_of(run), ElementsAre("loss_is_no_number"));
  EXPECT_THAT(first_of(run), HasSubstr("at step 121 (rank 1)"));
}

TEST(MonitorRules, Overfitting) {
  auto run = healthy_run({.ranks = 2});  // whose training loss falls from 6 to 3
  const auto validate = [&](const std::vector<double>& losses) {
    for (auto& record : run.ranks) {
      record.evaluations.clear();
      for (size_t i = 0; i < losses.size(); ++i) {
        const auto step = 50 * (i + 1);
        record.evaluations.push_back({0.1 * double(step), {step, "validation", losses[i], 1}});
      }
    }
  };
  validate({5, 4, 4.2, 4.5});
  EXPECT_THAT(ids_of(run), ElementsAre("overfitting"));
  EXPECT_THAT(first_of(run), HasSubstr("4.000 after step 100 and is 4.500 at the end; the training "
                                       "loss is 3.0"));
  const auto healthy = ElementsAre("nothing_stands_out");
  validate({5, 4, 4.2});  // once may be chance
  EXPECT_THAT(ids_of(run), healthy);
  validate({5, 4, 4.01, 4.02});  // so may be as little
  EXPECT_THAT(ids_of(run), healthy);
  validate({5, 4.5, 4.2, 4});
  EXPECT_THAT(ids_of(run), healthy);
  validate({2.5, 2.4, 2.5, 2.6});  // below the training loss, which dropout raises
  EXPECT_THAT(ids_of(run), healthy);
}

TEST(MonitorRules, StepsThatBecomeSlower) {
  auto run = healthy_run({.ranks = 1});
  double late = 0;
  for (size_t i = 0; i < 200; ++i) {
    auto& step = run.ranks[0].steps[i];
    step.begin += late;
    if (i >= 100) late += 0.05;
    step.end += late;
    if (i < 100) continue;
    for (auto& phase : step.phases) phase *= 1.5F;
  }
  run.ranks[0].last += late;
  EXPECT_THAT(ids_of(run), ElementsAre("steps_became_slower"));
  EXPECT_THAT(first_of(run), HasSubstr("100 ms early, 150 ms at the end"));
}

TEST(MonitorRules, NoRegularEnd) {
  auto run = healthy_run({.ranks = 2});
  run.ranks[1].ended = false;
  EXPECT_THAT(ids_of(run), ElementsAre("no_regular_end"));
  EXPECT_THAT(first_of(run), HasSubstr("Rank 1 did not end normally"));
}

TEST(MonitorRules, NoSteps) {
  EXPECT_THAT(ids_of(healthy_run({.ranks = 1, .steps = 0})), ElementsAre("no_steps"));
}

TEST(MonitorRules, TheHeaviestComesFirst) {
  auto run = healthy_run({.ranks = 1});
  move_time(run.ranks[0], 1, 0, 0.015);
  move_time(run.ranks[0], 2, 3, 0.045);
  EXPECT_THAT(ids_of(run), ElementsAre("slow_optimizer", "waits_for_data"));
}

}  // namespace
}  // namespace checker::monitor
