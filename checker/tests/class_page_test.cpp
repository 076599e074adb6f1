// The class's page as a real browser shows it.
#include <gmock/gmock.h>

#include "browser.hpp"
#include "class_fixture.hpp"
#include "grade/render.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A class in which everything occurs: names of all kinds, findings, timelines, compile errors, late
// and missing work.
grade::ClassReport large_class(size_t students) {
  std::vector<grade::Student> all;
  for (size_t i = 0; i < students; ++i) {
    auto five = testing::half_done();
    five.timeline =
        Timeline{{{{0, 0.1, "all_reduce of 2 float64 (SUM)"}}, {{0.05, 0.2, "broadcast", false}}}};
    auto two = testing::report(testing::course(), "02_setup");
    if (i % 7 == 0)
      two.compile_error = CompileError{"steps/02_setup/train.cpp:12", "expected ';'", "int a"};
    std::vector<Report> reports{two};
    if (i % 3 != 0) reports.push_back(five);
    auto one = testing::student(
        "student " + std::to_string(i) + (i % 10 ? "" : " <b>" + std::string(100, 'w')), reports);
    one.late = i % 5 == 0;
    if (i % 11 == 0) one.remarks = {"steps/02_setup/train.cpp is a link, and was left out"};
    all.push_back(one);
  }
  return testing::class_of(all);
}

// Looks at the page from outside, as a reader would, and writes down what it saw.
constexpr const char* kReader = R"(
  const link = [...page.querySelectorAll('.grid tbody a')].at(-1);
  link.click();
  setTimeout(() => {
    const student = page.querySelector(link.getAttribute('href'));
    const box = student.getBoundingClientRect();
    const cell = page.querySelector('.grid td.done');
    document.body.textContent = 'seen: ' + [
      'rows ' + page.querySelectorAll('.grid tbody tr').length,
      'students ' + page.querySelectorAll('details.student').length,
      'opened ' + student.open,
      'in view ' + (box.top >= 0 && box.top < 900),
      'overflow ' + (page.documentElement.scrollWidth > view.innerWidth),
      'green ' + view.getComputedStyle(cell).color,
      'requests ' + view.performance.getEntriesByType('resource').length].join(', ') + ' end';
  }, 500);
)";

class ClassPage : public ::testing::TestWithParam<std::pair<size_t, int>> {};

TEST_P(ClassPage, IsShownByABrowser) {
  if (!testing::has_browser()) GTEST_SKIP() << "no chromium";
  const auto [students, width] = GetParam();
  const auto seen = testing::seen_by_browser(grade::to_html(large_class(students)), width, kReader);
  const auto number = std::to_string(students);
  EXPECT_THAT(seen,
              HasSubstr("seen: rows " + number + ", students " + number +
                        ", opened true, in view true, overflow false, green rgb(46, 139, 87), "
                        "requests 0 end"));
  EXPECT_THAT(seen, Not(HasSubstr("CONSOLE")));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ClassPage,
                         ::testing::Values(std::pair(40, 1280), std::pair(40, 700),
                                           std::pair(400, 1280)),
                         [](const auto& info) {
                           return "Of" + std::to_string(info.param.first) + "At" +
                                  std::to_string(info.param.second);
                         });

}  // namespace
}  // namespace checker
