// The page, the summary and the tables hold what the records hold.
#include "monitor/page.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "files.hpp"
#include "monitor/chart.hpp"
#include "monitor/csv.hpp"
#include "monitor/curves.hpp"
#include "monitor/summary.hpp"
#include "monitor/timeline.hpp"
#include "monitor/words.hpp"
#include "monitor_runs.hpp"
#include "support/text.hpp"

namespace checker::monitor {
namespace {

using checker::testing::healthy_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string page_of(const Run& run) { return to_page(run, figures_of(run)); }

std::string drawn(const Chart& chart) {
  pugi::xml_document page;
  draw(page, chart);
  return markup::to_html(page);
}

std::string timelines_of(const Run& run) {
  pugi::xml_document page;
  draw_timelines(page, run);
  return markup::to_html(page);
}

TEST(MonitorWords, AreThoseOfPeople) {
  EXPECT_EQ(shown_seconds(12.34e-6), "12.3 µs");
  EXPECT_EQ(shown_seconds(0.00456), "4.56 ms");
  EXPECT_EQ(shown_seconds(125), "2 min 05 s");
  EXPECT_EQ(shown_seconds(4321), "1 h 12 min");
  EXPECT_EQ(shown_bytes(512), "512 B");
  EXPECT_EQ(shown_bytes(1.5 * (1 << 20)), "1.50 MiB");
  EXPECT_EQ(shown_count(18345), "18.3k");
  EXPECT_EQ(shown_share(0.004), "0.4 %");
  EXPECT_EQ(collective_name(1), "all_reduce");
}

TEST(MonitorChart, SampledDownKeepsEverySpike) {
  std::vector<Point> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({double(i), 1});
  points[54'321].y = 9;
  points[77'777].y = -9;
  const auto kept = sampled_down(points, 200);
  EXPECT_LE(kept.size(), 400U);
  EXPECT_GE(kept.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &Point::x));
  const auto has = [&](double x, double y) {
    return std::ranges::any_of(kept, [&](const Point& p) { return p.x == x && p.y == y; });
  };
  EXPECT_TRUE(has(54'321, 9));
  EXPECT_TRUE(has(77'777, -9));
  EXPECT_EQ(sampled_down(std::span(points).first(400), 200).size(), 400U);  // fit as they are
}

TEST(MonitorChart, TicksAreRoundNumbers) {
  EXPECT_THAT(ticks_between(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks_between(2.9, 4.2, 3), ElementsAre(3, 3.5, 4));
}

TEST(MonitorChart, WithoutPointsIsNone) {
  EXPECT_EQ(drawn({.title = "Nothing", .series = {{"a", {}}}}), "");
  EXPECT_EQ(drawn({.title = "Nothing", .series = {{"a", {{1, std::nan("")}}}}}), "");
  EXPECT_EQ(drawn({.title = "Nothing", .series = {{"a", {{1, 1}}}}}), "");
}

// Without that, one first step of 0.2 s makes all others a line at the bottom.
TEST(MonitorChart, EndsBelowFewPeaksAndSaysHowHighTheyAre) {
  Chart chart{.title = "Time of a step", .y_unit = "s", .series = {{"rank 0", {}}}};
  auto& points = chart.series[0].points;
  for (int i = 0; i < 1000; ++i) points.push_back({double(i), 0.005});
  const auto drawn_with = [&](int peaks) {
    for (int i = 0; i < peaks; ++i) points[static_cast<size_t>(i)].y = 0.2;
    return drawn(chart);
  };
  const auto top = [](const std::string& html) {
    constexpr std::string_view kName = "data-high=\"";
    return std::stod(html.substr(html.find(kName) + kName.size()));
  };
  chart.cuts_peaks = true;
  EXPECT_NEAR(top(drawn_with(0)), 0.005, 0.001);
  EXPECT_THAT(drawn_with(0), Not(HasSubstr("beyond")));
  EXPECT_NEAR(top(drawn_with(10)), 0.005, 0.001);
  EXPECT_THAT(drawn_with(10), HasSubstr("at most 200 ms, outside the plot"));
  EXPECT_NEAR(top(drawn_with(20)), 0.2, 0.02) << "that many are no exception";
  EXPECT_THAT(drawn_with(20), Not(HasSubstr("beyond")));
  chart.cuts_peaks = false;
  EXPECT_NEAR(top(drawn_with(10)), 0.2, 0.02);
}

TEST(MonitorPage, SaysWhatTheRecordsSay) {
  const auto run = healthy_run({.ranks = 4, .gpus = true});
  const auto figures = figures_of(run);
  EXPECT_NEAR(figures.tokens_per_second, 4 * 1000 / 0.1, 1e-3);
  EXPECT_NEAR(figures.step_time, 0.1, 1e-6);
  EXPECT_NEAR(figures.ranks[2].shares[2], 0.55, 1e-5);
  EXPECT_NEAR(figures.gpu_hours, 4 * 21 / 3600.0, 1e-9);
  EXPECT_NEAR(figures.watt_hours, 4 * 500 * 21 / 3600.0, 0.1);
  EXPECT_NEAR(figures.collectives.at(0).bytes, 200 << 20, 1);
  EXPECT_NEAR(*figures.last_loss, 6 - 3 * 194.5 / 200, 1e-6);
  const auto page = page_of(run);
  EXPECT_THAT(page, StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<b>40.0k</b><span>tokens/s, all ranks"));
  EXPECT_THAT(page, HasSubstr("<b>0.023</b><span>GPU hours"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "<th>all_reduce</th><td>200</td><td>200 MiB</td><td>1.00 MiB</td><td>5.00 ms</td>"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "<td>4.00 MiB</td><td>4.00 MiB</td><td>8.00 MiB</td><td>32.0 MiB</td><td>600 MiB</td>"));
  EXPECT_THAT(page, HasSubstr("data-id=\"nothing_stands_out\""));
  EXPECT_THAT(page, HasSubstr("measured on the host"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));  // nothing is fetched, from nowhere
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
}

TEST(MonitorPage, NamesFromOutsideStayText) {
  auto run = healthy_run({.ranks = 1});
  run.ranks[0].configuration["task"] = "<script>alert(1)</script>";
  run.remarks.emplace_back("<b>x</b>");
  const auto page = page_of(run);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;x"));
}

TEST(MonitorPage, WithoutStepsOrSamplesIsAPage) {
  auto run = healthy_run({.ranks = 1, .steps = 0});
  run.ranks[0].process.clear();
  run.ranks[0].node.clear();
  run.ranks[0].memory.reset();
  EXPECT_THAT(page_of(run), HasSubstr("No step was recorded"));
}

// What a long run on many GPUs leaves: 64 ranks, 20,000 steps.
TEST(MonitorPage, OfALongRunOnManyRanksStaysSmall) {
  const auto run = healthy_run({.ranks = 64, .steps = 20'000, .gpus = true, .detailed = 1000});
  const auto page = page_of(run);
  EXPECT_LT(page.size(), 5'000'000U);
  EXPECT_GT(page.size(), 500'000U);
  EXPECT_THAT(page, HasSubstr(">rank 63<"));
}

// A host runs ahead of its GPU: what lies between a call and its end is mostly a queue.
TEST(MonitorTimeline, ShowsQueuesOnGpusAsSuch) {
  auto run = healthy_run({.ranks = 2, .gpus = true});
  EXPECT_THAT(timelines_of(run), AllOf(HasSubstr("<rect class=\"q\" "), HasSubstr("GPU's queue"),
                                       Not(HasSubstr("<rect class=\"c\" "))));
  for (auto& record : run.ranks) record.collectives.front().on_gpu = 1e-3;
  EXPECT_THAT(timelines_of(run),
              AllOf(HasSubstr("<rect class=\"c\" "), Not(HasSubstr("class=\"q\""))));
}

TEST(MonitorTimeline, TakesAsManyStepsAsFit) {
  const auto run = healthy_run({.ranks = 4, .steps = 100});
  const auto window = window_around(run, 50, 400);  // 20 marks a step
  EXPECT_LE(window.first, 50U);
  EXPECT_GE(window.last, 50U);
  EXPECT_EQ(window.last - window.first + 1, 20U);
  const auto all = window_around(run, 1, 1'000'000);
  EXPECT_EQ(all.first, 1U);
  EXPECT_GE(all.last, 39U);
}

TEST(MonitorCurves, LossIsTheMeanOfTheRanks) {
  auto run = healthy_run({.ranks = 2, .steps = 3});
  run.ranks[0].steps[1].loss = 4;
  run.ranks[1].steps[1].loss = 5;
  run.ranks[0].steps[2].loss = std::nan("");
  run.ranks[1].steps[2].loss = std::nan("");
  const auto points = loss_by_step(run);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1].x, 2);
  EXPECT_EQ(points[1].y, 4.5);
  EXPECT_NEAR(loss_by_time(run)[1].x, 1.2, 1e-9);
}

TEST(MonitorCurves, AnEvaluationIsTheSumOfTheRanksParts) {
  auto run = healthy_run({.ranks = 2, .steps = 10});
  run.ranks[0].evaluations = {{1.5, {5, "validation", 30, 10}}, {2, {10, "validation", 5, 10}}};
  run.ranks[1].evaluations = {{1.6, {5, "validation", 10, 30}}, {2, {10, "test", 7, 7}}};
  const auto figures = figures_of(run);
  ASSERT_EQ(figures.evaluations.size(), 3U);
  EXPECT_EQ(figures.evaluations[1].loss, 1);
  EXPECT_EQ(figures.evaluations[1].time, 1.6);
  EXPECT_EQ(figures.best_validation, 0.5);
  const auto curves = training_curves(run, figures).at(0).series.at(1);
  EXPECT_EQ(curves.name, "validation");
  ASSERT_EQ(curves.points.size(), 2U);
  EXPECT_EQ(curves.points[0].x, 5);
  EXPECT_EQ(curves.points[0].y, 1);
  const auto page = page_of(run);
  EXPECT_THAT(page, HasSubstr("<b>0.500</b><span>lowest validation loss</span>"));
  EXPECT_THAT(page, HasSubstr("<path class=\"s1\" d=\"M444.4"));  // a point for each of a few
}

TEST(MonitorSummary, IsShort) {
  const auto run = healthy_run({.ranks = 2});
  const auto lines = to_lines(run, figures_of(run), Look{.descriptor = -1});
  const auto text = join(lines, "\n");
  EXPECT_THAT(text, HasSubstr("steps           200, 100 ms each (median)"));
  EXPECT_THAT(text, HasSubstr("rank 1          data 5 %, forward 30 %, backward 55 %"));
  EXPECT_THAT(text, HasSubstr("all_reduce      200 calls, 200 MiB from each rank"));
  EXPECT_THAT(text, HasSubstr("Nothing stands out"));
}

TEST(MonitorCsv, HoldsEveryStepSampleAndCollective) {
  const TemporaryFolder folder;
  auto run = healthy_run({.ranks = 2, .steps = 20, .gpus = true});
  run.ranks[1].evaluations = {{1.5, {5, "validation", 30.25, 10}}};
  run.ranks[1].measured = {{1.5, {5, "validation/accuracy", 7, 10}}};
  write_csv(run, folder.path());
  const auto lines = [&](const char* file) { return split_lines(read_file(folder.path() / file)); };
  EXPECT_EQ(lines("steps.csv").size(), 41U);
  EXPECT_EQ(lines("steps.csv")[1],
            "0,1,1.000000,1.100000,0.005000,0.030000,0.055000,0.010000,0.005000,1000,0.001,"
            "6.000000");
  EXPECT_EQ(lines("evaluations.csv").at(1), "1,validation,5,1.500000,30.250000,10");
  EXPECT_EQ(lines("metrics.csv").at(1), "1,validation/accuracy,5,1.500000,7.000000,10");
  EXPECT_EQ(lines("collectives.csv").size(), 41U);
  EXPECT_EQ(lines("collectives.csv")[1], "0,0,0,all_reduce,1.080000,1.085000,1048576,0");
  EXPECT_EQ(lines("ranks.csv").size(), 1 + 2 * run.ranks[0].process.size());
  EXPECT_EQ(lines("gpus.csv").size(), 1 + run.ranks[0].gpus.size());
  EXPECT_EQ(lines("nodes.csv").size(), 1 + run.ranks[0].node.size());
}

}  // namespace
}  // namespace checker::monitor
