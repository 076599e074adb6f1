#include "junit/junit.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "support/error.hpp"

namespace checker {
namespace {

// As ctest 3.25 writes it.
constexpr auto report_text = R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="4" failures="0" disabled="1" skipped="2" hostname="h" time="1">
  <testcase name="A.Passes" classname="A.Passes" time="0.1" status="run">
    <system-out>whatever: Skipped
no</system-out>
  </testcase>
  <testcase name="A.Gpu" classname="A.Gpu" time="0.1" status="notrun">
    <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>Running main() from gtest_main.cc
[ RUN      ] A.Gpu
/src/a_test.cpp:12: Skipped
no GPU here;
&lt;driver&gt; missing

[  SKIPPED ] A.Gpu (0 ms)
[  PASSED  ] 0 tests.</system-out>
  </testcase>
  <testcase name="Suite" status="run"><system-out>
[ RUN      ] Suite.First
[       OK ] Suite.First (0 ms)
[ RUN      ] Suite.OnGpu/1
/src/b_test.cpp:7: Skipped
no GPU here

[  SKIPPED ] Suite.OnGpu/1 (0 ms)
[ RUN      ] Suite.Third
[       OK ] Suite.Third (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Suite.OnGpu/1</system-out></testcase>
  <testcase name="A.Silent" status="notrun"><skipped message="Disabled"/><system-out></system-out></testcase>
  <testcase name="A.Off" status="disabled"/>
  <testcase name="a_script" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>looking
SKIPPED: no such program
</system-out></testcase>
</testsuite>)";

TEST(Junit, ListsSkippedTestsWithTheirReasons) {
  const auto report = parse_junit(report_text);
  EXPECT_EQ(report.tests, 8U);
  ASSERT_EQ(report.skipped.size(), 5U);
  EXPECT_EQ(report.skipped[0].name, "A.Gpu");
  EXPECT_EQ(report.skipped[0].reason, "no GPU here; <driver> missing");
  EXPECT_EQ(report.skipped[1].name, "Suite.OnGpu/1");
  EXPECT_EQ(report.skipped[1].reason, "no GPU here");
  EXPECT_EQ(report.skipped[2].reason, "Disabled");
  EXPECT_EQ(report.skipped[3].reason, "disabled");
  EXPECT_EQ(report.skipped[4].reason, "no such program");
}

TEST(Junit, RefusesWhatIsNone) {
  EXPECT_THROW(parse_junit("<testsuite><testcase"), Error);
  EXPECT_THROW(parse_junit(""), Error);
  EXPECT_THROW(parse_junit("<html/>"), Error);
}

}  // namespace
}  // namespace checker
