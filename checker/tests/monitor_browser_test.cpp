// The page of a run as a real browser shows it.
#include <gmock/gmock.h>

#include "monitor/compare.hpp"
#include "monitor/page.hpp"
#include "monitor_browser.hpp"
#include "monitor_runs.hpp"

namespace checker::monitor {
namespace {

using checker::testing::healthy_run;
using checker::testing::run_seen_by_browser;
using checker::testing::Shape;
using ::testing::HasSubstr;
using ::testing::Not;

class MonitorBrowser : public ::testing::TestWithParam<std::pair<Shape, int>> {};

TEST_P(MonitorBrowser, ShowsTheRun) {
  if (!checker::testing::has_browser()) GTEST_SKIP() << "no chromium";
  const auto [shape, width] = GetParam();
  const auto run = healthy_run(shape);
  const auto seen = run_seen_by_browser(to_page(run, figures_of(run)), width);
  EXPECT_THAT(seen, HasSubstr("rows " + std::to_string(shape.ranks) +
                              ", tip backward, zoomed to 250+250, back true, wide true, "
                              "overflow false, requests 0 end"));
  EXPECT_THAT(seen, Not(HasSubstr("CONSOLE")));
}

INSTANTIATE_TEST_SUITE_P(
    Runs, MonitorBrowser,
    ::testing::Values(std::pair(Shape{.ranks = 1}, 1280), std::pair(Shape{.ranks = 2}, 700),
                      std::pair(Shape{.ranks = 8, .gpus = true}, 1280),
                      std::pair(Shape{.ranks = 64, .steps = 2000, .detailed = 200}, 1280)),
    [](const auto& info) {
      return "Of" + std::to_string(info.param.first.ranks) + "RanksAt" +
             std::to_string(info.param.second);
    });

TEST(MonitorBrowserOfSeveral, ShowsThemSideBySide) {
  if (!checker::testing::has_browser()) GTEST_SKIP() << "no chromium";
  std::vector<ComparedRun> runs;
  for (const size_t ranks : {1U, 4U, 8U}) {
    const auto run = healthy_run({.ranks = ranks});
    runs.push_back({std::to_string(ranks) + " ranks", run, figures_of(run)});
  }
  const auto seen = run_seen_by_browser(to_comparison_page(runs), 1280);
  EXPECT_THAT(seen, HasSubstr("charts 2, rows 3, tip none, zoomed to 250+250, back true, wide "
                              "true, overflow false, requests 0 end"));
  EXPECT_THAT(seen, Not(HasSubstr("CONSOLE")));
}

}  // namespace
}  // namespace checker::monitor
