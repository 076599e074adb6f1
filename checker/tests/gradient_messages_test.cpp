// Which messages average gradients, and what is computed while they travel.
#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "evidence/collective_kinds.hpp"
#include "judge/rules/gradient_crash.hpp"
#include "judge/rules/gradient_messages.hpp"
#include "log_writer.hpp"

namespace checker::rules {
namespace {

using instrumentation::CollectiveRecord;
using instrumentation::WaitedRecord;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a rank did: ( and ) begin and end backward(), p is a matrix product, s an optimizer step. A
// digit is a message of so many elements; the same digit again begins and ends a wait for it, or
// takes its future where ? stands before it. Between < and > another thread does what is done.
class Rank {
 public:
  explicit Rank(CollectiveKind kind = CollectiveKind::all_reduce) : kind_(kind) {
    log_.add(Kind::model, LogWriter::tensor("w", 7, 1));
  }

  RankSeen that(const std::string& did) {
    for (const char mark : did) take(mark);
    return read(log_);
  }

 private:
  void take(char mark) {
    const bool asks_for_future = std::exchange(asks_for_future_, mark == '?');
    if (mark == 'p') {
      ++products_;
    } else if (mark == '(') {
      log_.add(Kind::backward, uint64_t{0});
    } else if (mark == ')') {
      log_.add(Kind::backward_ended, uint64_t{0});
    } else if (mark == '<' || mark == '>') {
      log_.on_thread(mark == '<' ? 2 : 1);
    } else if (mark == 's') {
      log_.add(Kind::loss, 1.0, 1.0, 1.0).add(Kind::stepping, uint64_t{0}, uint64_t{0});
      log_.add(Kind::values, 0.5).add(Kind::gradients, 0.1);
    } else if (asks_for_future) {
      wait(mark, instrumentation::kFutureTaken);
    } else if (sent_.contains(mark)) {
      wait(mark, 0);
      wait(mark, 1);
    } else if (mark != '?') {
      send(mark);
    }
  }

  void send(char mark) {
    CollectiveRecord call{};
    call.sequence = sent_[mark] = sequence_++;
    call.elements = static_cast<uint64_t>(mark - '0');
    call.products = products_;
    call.op_type = static_cast<uint8_t>(kind_);
    log_.add(Kind::collective, call);
  }

  void wait(char mark, uint32_t done) {
    log_.add(
        Kind::waited,
        WaitedRecord{.sequence = sent_.at(mark), .products = products_, .group = 0, .done = done});
  }

  CollectiveKind kind_;
  LogWriter log_;
  uint64_t products_ = 0, sequence_ = 0;
  std::map<char, uint64_t> sent_;
  bool asks_for_future_ = false;
};

RankSeen rank_that(const std::string& did) { return Rank().that(did); }

// Of each step, of each message its elements; early: only those that overlap.
std::vector<std::vector<uint64_t>> sizes_in(const RankSeen& rank, bool early = false) {
  std::vector<std::vector<uint64_t>> sizes;
  for (const auto& step : gradient_messages(rank)) {
    auto& own = sizes.emplace_back();
    for (const auto& message : step.messages) {
      if (!early || step.overlaps(message)) own.push_back(message.seen->call.elements);
    }
  }
  return sizes;
}

TEST(GradientMessages, AreThoseBetweenBackwardAndItsStep) {
  EXPECT_THAT(sizes_in(rank_that("3(p4p)5s6(p)s")), ElementsAre(ElementsAre(4, 5), IsEmpty()));
  EXPECT_THAT(sizes_in(rank_that("(p)123s")), ElementsAre(ElementsAre(3))) << "others are losses";
  EXPECT_THAT(sizes_in(rank_that("(p3p)")), IsEmpty()) << "no step follows";
}

TEST(GradientMessages, AreInBackwardUntilItHasEnded) {
  const auto steps = gradient_messages(rank_that("(p3p)4s(p5)6s"));
  ASSERT_EQ(steps.size(), 2U);
  for (const auto& step : steps) {
    ASSERT_EQ(step.messages.size(), 2U);
    EXPECT_TRUE(step.messages[0].in_backward);
    EXPECT_FALSE(step.messages[1].in_backward);
  }
}

TEST(GradientMessages, OverlapWhatBeginsBeforeTheirWait) {
  EXPECT_THAT(sizes_in(rank_that("(p3p4p5)345s"), true), ElementsAre(ElementsAre(3, 4)));
  EXPECT_THAT(sizes_in(rank_that("(p33p44p55)s"), true), ElementsAre(IsEmpty())) << "at once";
  EXPECT_THAT(sizes_in(rank_that("(ppp)345345s"), true), ElementsAre(IsEmpty())) << "too late";
  EXPECT_THAT(sizes_in(rank_that("(p3p4p)?3?44s"), true), ElementsAre(ElementsAre(3, 4)))
      << "a wait that nobody sees comes with the last one";
}

TEST(GradientMessages, HoldUpNobodyWhereAThreadAsideWaits) {
  EXPECT_THAT(sizes_in(rank_that("(ppp<33>)s"), true), ElementsAre(ElementsAre(3)));
  EXPECT_THAT(sizes_in(rank_that("(ppp<3>3)s"), true), ElementsAre(IsEmpty()))
      << "backward() waits";
}

TEST(GradientMessages, AreToldFromOnesAfterTheStep) {
  checker::Run run;
  run.ranks.push_back(rank_that("(p3p)3s"));
  EXPECT_FALSE(sends_after_steps(run));
  run.ranks.push_back(rank_that("(pp)s4"));
  EXPECT_TRUE(sends_after_steps(run));
}

TEST(GradientMessages, MayBeSentBySomeRanksOnly) {
  const auto only_some = [](const std::string& one, const std::string& other) {
    checker::Run run;
    run.ranks.push_back(rank_that(one));
    run.ranks.push_back(rank_that(other));
    return only_some_send_in_backward(run);
  };
  EXPECT_TRUE(only_some("(p3p", "(pp)s4")) << "the first waits, and the other sends something else";
  EXPECT_TRUE(only_some("(p3p)3s(p4p", "(p3p)3s(pp)s"));
  EXPECT_FALSE(only_some("(p3p)3s", "(p3p)3s"));
  EXPECT_FALSE(only_some("(p3p)3s", "(pp)33s")) << "the other sends it later";
  EXPECT_FALSE(only_some("(p3p", "(pp)")) << "it has not stepped, and may be about to send";
  EXPECT_FALSE(only_some("(pp)33s", "(pp)s")) << "not in backward()";
}

TEST(GradientMessages, MayComeToOneRankOnly) {
  checker::Run run;
  run.ranks.push_back(Rank(CollectiveKind::reduce).that("(p3p)3s(pp)s"));
  EXPECT_TRUE(only_reduces(run, 0));
  EXPECT_FALSE(only_reduces(run, 1)) << "nothing is sent";
  run.ranks.push_back(rank_that("(p3p)3s"));
  EXPECT_FALSE(only_reduces(run, 0));
}

TEST(GradientMessages, SayHowMuchIsReduced) {
  EXPECT_EQ(gradient_messages(rank_that("(p3p)4s"))[0].reduced(), 7U);
  EXPECT_EQ(gradient_messages(Rank(CollectiveKind::all_gather).that("(p3p)4s"))[0].reduced(), 0U);
}

TEST(GradientMessages, MaySumUpWhatIsAveragedAlready) {
  const auto again = [](const RankSeen& rank) { return summed_once_more(rank, 0); };
  EXPECT_EQ(again(rank_that("(p8p)8s")), nullptr) << "that is its wait";
  EXPECT_EQ(again(rank_that("(p8p)89s"))->call.elements, 9U);
  EXPECT_EQ(again(rank_that("(pp)89s")), nullptr) << "the first sum of them";
  EXPECT_EQ(summed_once_more(rank_that("(p8p)89s"), 1), nullptr) << "there is no such step";
}

TEST(GradientMessages, MayBeFewerThanInTheFirstStep) {
  checker::Run run;
  run.ranks.push_back(rank_that("(3p)3s(4p)4s(p)s"));
  EXPECT_FALSE(sends_less_than_first(run, 0));
  EXPECT_FALSE(sends_less_than_first(run, 1));
  EXPECT_TRUE(sends_less_than_first(run, 2));
  EXPECT_FALSE(sends_less_than_first(run, 3)) << "there is no such step";
}

TEST(GradientMessages, MayBringOneRanksGradientsToAll) {
  checker::Run run;
  ExpectedWorld truth;
  const auto add = [&](std::vector<double> gradients, double local) {
    run.ranks.emplace_back().steps.push_back({.values = {}, .gradients = std::move(gradients)});
    StepDeviations step;
    step.known = true;
    step.local = local;
    truth.ranks.emplace_back().steps.push_back(step);
  };
  const auto giver = [&](size_t step = 0) { return giver_of_gradients(run, truth, step, 1e-9); };
  add({1, 2}, 0.5);
  add({1, 2}, 0);
  EXPECT_EQ(giver(), 1U);
  EXPECT_EQ(giver(1), std::nullopt) << "nobody knows";
  truth.ranks[1].steps[0].local = 0.1;
  EXPECT_EQ(giver(), std::nullopt) << "they are no rank's own";
  truth.ranks[1].steps[0].local = 0;
  add({1, 3}, 0);
  EXPECT_EQ(giver(), std::nullopt) << "the third has its own";
}

// One that did this with a model of nine elements, and died with these last words.
std::optional<GradientCrash> crash_of(const std::string& did, const std::string& words,
                                      bool of_memory = false) {
  auto rank = rank_that(did);
  rank.model = {{.name = "w", .elements = 9}, {.name = "mean", .buffer = true, .elements = 5}};
  rank.errors = {"error: " + words};
  return gradient_crash(rank, of_memory);
}

TEST(GradientCrash, InBackwardIsAHooks) {
  using enum GradientCrash::Cause;
  EXPECT_EQ(crash_of("(p4", "tensor does not have a device")->cause, gradient_not_there);
  EXPECT_EQ(crash_of("(p)9s(p", "an undefined Tensor")->cause, gradient_not_there);
  EXPECT_EQ(crash_of("(p4", "free(): invalid pointer", true)->cause, memory_in_backward);
  EXPECT_EQ(crash_of("(p4", "shapes differ")->cause, other_in_backward);
}

TEST(GradientCrash, BehindBackwardIsToldByWhatHasLeft) {
  using enum GradientCrash::Cause;
  const auto cause = [](const std::string& did) {
    return crash_of(did, "bad optional access")->cause;
  };
  EXPECT_EQ(cause("(p4p)4"), no_message);
  EXPECT_EQ(cause("(p4p5)4"), nothing_missing);
  EXPECT_EQ(crash_of("(p4p)", "", true)->cause, no_message);
  EXPECT_EQ(crash_of("(p4p)", "shapes differ")->cause, left_early);
  EXPECT_EQ(crash_of("(p)4", "shapes differ")->cause, other_behind) << "finish() sends";
  EXPECT_EQ(crash_of("(p4p5)", "shapes differ")->cause, other_behind) << "all have left";
}

TEST(GradientCrash, BehindBackwardMayFindAGradientGone) {
  using enum GradientCrash::Cause;
  const std::string words = "Expected a proper Tensor but got None (or an undefined Tensor in C++)";
  EXPECT_EQ(crash_of("(p4p5)45", words)->cause, gradient_gone);
  EXPECT_EQ(crash_of("(p)", words)->cause, gradient_gone);
  EXPECT_EQ(crash_of("(p4p)4", words)->cause, left_early);
}

TEST(GradientCrash, IsComparedWithTheFirstStep) {
  const auto crash = crash_of("(p4p5)45s(p3p)", "bad optional access");
  EXPECT_EQ(crash->step, 2U);
  EXPECT_EQ(crash->sent, 3U);
  EXPECT_EQ(crash->all, 9U);
  EXPECT_TRUE(crash->sent_more);
  EXPECT_FALSE(crash_of("(p4p5)", "bad optional access")->sent_more);
}

TEST(GradientCrash, ComesBetweenBackwardAndTheStep) {
  EXPECT_FALSE(crash_of("p", "bad optional access"));
  EXPECT_FALSE(crash_of("(p4p)4s", "bad optional access")) << "it has stepped";
}

TEST(GradientMessages, AreNotTheBroadcastsBeforeTheTraining) {
  EXPECT_EQ(broadcasts_before_training(Rank(CollectiveKind::broadcast).that("34(p)s")), 2U);
  EXPECT_EQ(broadcasts_before_training(rank_that("34(p)s")), 0U) << "all_reduce";
}

// One rank with two parameters of four and five elements, and one of a single number.
checker::Run run_that(const std::string& did) {
  checker::Run run;
  auto& rank = run.ranks.emplace_back(rank_that(did));
  rank.parameters = {
      {.name = "a", .elements = 4}, {.name = "b", .elements = 5}, {.name = "c", .elements = 1}};
  return run;
}

TEST(GradientMessages, MayBeOneForEachGradient) {
  EXPECT_TRUE(sends_each_alone(run_that("(p4p5p)45s"), 0));
  EXPECT_FALSE(sends_each_alone(run_that("(p)45s"), 0)) << "nothing of it overlaps";
  EXPECT_FALSE(sends_each_alone(run_that("(p9p)9s"), 0)) << "a bucket";
  EXPECT_FALSE(sends_each_alone(run_that("(p4p)4s"), 0)) << "one is left behind";
  EXPECT_FALSE(sends_each_alone(run_that("(p4p5p)45s"), 1)) << "no such step";
}

TEST(GradientMessages, MayLeaveGradientsBehind) {
  EXPECT_TRUE(leaves_some_behind(run_that("(p4p)4s"), 0));
  EXPECT_FALSE(leaves_some_behind(run_that("(p4p5)45s"), 0));
  EXPECT_FALSE(leaves_some_behind(run_that("(p9p)9s"), 0));
  EXPECT_FALSE(leaves_some_behind(run_that("(p)s"), 0)) << "nothing leaves at all";
}

TEST(GradientMessages, AreToldFromOnesBeforeTheTraining) {
  checker::Run run;
  run.ranks.push_back(rank_that("34(p)s"));
  EXPECT_FALSE(sends_gradients(run));
  EXPECT_TRUE(sends_before_training(run));
  run.ranks.push_back(rank_that("(p3p)s"));
  EXPECT_TRUE(sends_gradients(run));
}

}  // namespace
}  // namespace checker::rules
