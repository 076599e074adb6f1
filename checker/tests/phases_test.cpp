// Where ranks part, and what they leave out.
#include <gtest/gtest.h>

#include "judge/departure.hpp"
#include "judge/phases.hpp"

namespace checker {
namespace {

// What a rank came past: t, v and e are batches of training, validation and test, p and s calls of
// print0 and save0; "." is the end of main(), after leaving the group or not.
RankSeen rank_that(const std::string& came_past, bool destroyed = false) {
  RankSeen rank;
  for (const char mark : came_past) {
    Event event;
    const auto split = std::string("tve").find(mark);
    if (split != std::string::npos) {
      event.kind = Kind::fetch;
      event.payload = std::string(8, '\0');
      event.payload[0] = static_cast<char>(split);
    } else {
      event.kind = mark == 'p' ? Kind::printed : Kind::saved;
    }
    if (mark == '.') {
      rank.left_regularly = true;
    } else {
      rank.log.events.push_back(event);
    }
  }
  if (destroyed) rank.shutdown_event = rank.log.events.size();
  return rank;
}

std::optional<std::string> left_out(std::vector<RankSeen> ranks) {
  Run run;
  run.ranks = std::move(ranks);
  return first_call_left_out(run);
}

TEST(Divergence, FindsTheCallThatARankLeftOut) {
  const auto all = rank_that("tvpstvpepps.", true);
  EXPECT_EQ(left_out({all, all}), std::nullopt);
  EXPECT_EQ(left_out({rank_that("tvps"), rank_that("tvp")}), std::nullopt) << "on its way there";
  EXPECT_EQ(left_out({rank_that("tv"), rank_that("tvst")}), "call.print0");
  EXPECT_EQ(left_out({rank_that("tvs"), rank_that("tve")}), "call.print0");
  EXPECT_EQ(left_out({all, rank_that("tvpstvpe.")}), "call.print0");
  EXPECT_EQ(left_out({rank_that("tvpstvpe"), rank_that("tvpstvps.", true)}), "call.print0");
  EXPECT_EQ(left_out({rank_that("tvps"), rank_that("tvpe")}), std::nullopt) << "left the epochs";
  EXPECT_EQ(left_out({all, rank_that("tvpstvpepp.")}), "call.save0");
  EXPECT_EQ(left_out({all, rank_that("tvpstvpe.", true)}), std::nullopt) << "it left too early";
}

// While it was still in its last validation, others were through and gone. It failed, and the run
// was ended while it was on its way out: it left nothing out.
TEST(Divergence, ARankWhoseCollectiveFailedLeftNothingOut) {
  auto failed = rank_that("tvpstv.");
  EXPECT_EQ(left_out({rank_that("tvpstvps.", true), failed}), "call.print0");
  failed.errors = {"error: [gloo] Connection closed by peer [127.0.0.1]:4711"};
  failed.result.ended_by_us = true;
  failed.result.exit.signal = 9;
  EXPECT_EQ(left_out({rank_that("tvpstvps.", true), failed}), std::nullopt);
}

TEST(Divergence, LeavesPrintingAndSavingInOtherWaysAlone) {
  EXPECT_EQ(left_out({rank_that("tvstvs"), rank_that("tvstvt")}), std::nullopt);
  EXPECT_EQ(left_out({rank_that("tvptvpepp.", true), rank_that("tvptvpepp.")}), std::nullopt);
}

// Batches of training ("t"), validations ("v"), the test ("e").
RankSeen rank_that_evaluates(const std::string& what) {
  RankSeen rank;
  for (const char c : what) {
    const auto split = c == 't' ? Split::train : c == 'v' ? Split::validation : Split::test;
    rank.passes.push_back({.split = split, .training = c == 't', .epoch = 0, .batches = {{}}});
  }
  return rank;
}

std::optional<std::string> evaluation(std::vector<std::string> ranks) {
  Run run;
  for (const auto& what : ranks) run.ranks.push_back(rank_that_evaluates(what));
  return first_evaluation_not_shared(run);
}

TEST(Divergence, FindsTheEvaluationThatARankPassesBy) {
  EXPECT_EQ(evaluation({"ttvttve", "ttvttve"}), std::nullopt);
  EXPECT_EQ(evaluation({"ttv", "ttt"}), "validation_by_some_ranks");
  EXPECT_EQ(evaluation({"ttvttve", "ttvtte"}), "validation_by_some_ranks");
  EXPECT_EQ(evaluation({"ttve", "tte"}), "validation_by_some_ranks");
}

TEST(Divergence, WhoHasNotComeThatFarPassesNothingBy) {
  EXPECT_EQ(evaluation({"ttvttv", "ttv"}), std::nullopt);
  EXPECT_EQ(evaluation({"ttv", "tt"}), std::nullopt);
  EXPECT_EQ(evaluation({"ttve", "ttv"}), std::nullopt);
  EXPECT_EQ(evaluation({"ttve", "ttvtt"}), std::nullopt) << "who tests early has left the epochs";
}

// An object that leaves the group does so when an exception passes it as well: the failure comes
// first then.
TEST(Departure, WorkAfterLeavingIsToldFromLeavingForAFailure) {
  auto rank = rank_that("tv", true);
  EXPECT_FALSE(worked_after_leaving(rank));
  EXPECT_FALSE(worked_after_leaving(rank_that("tv")));
  rank.errors = {"error: something else"};
  EXPECT_FALSE(worked_after_leaving(rank));
  rank.errors = {"error: There is no process group: destroy_process_group() has shut it down. ..."};
  EXPECT_TRUE(worked_after_leaving(rank));
  auto printed = rank_that("tvp");
  printed.shutdown_event = 1;
  EXPECT_TRUE(worked_after_leaving(printed));
}

TEST(Departure, LastWordsAreThoseOfTheException) {
  RankSeen rank;
  rank.errors = {"terminate called after throwing an instance of 'gloo::EnforceNotMet'",
                 "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4",
                 "*** Aborted at 1700000000"};
  EXPECT_EQ(last_words(rank),
            "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4");
  rank.errors.insert(rank.errors.begin(), "error: no such file");
  EXPECT_EQ(last_words(rank), "no such file");
  rank.errors = {"first", "last"};
  EXPECT_EQ(last_words(rank), "last");
}

}  // namespace
}  // namespace checker
