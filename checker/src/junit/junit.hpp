#pragma once
/// Reads the results of tests from ctest's JUnit file.
#include <string>
#include <vector>

namespace checker {

struct SkippedTest {
  std::string name;
  std::string reason;
};

struct TestReport {
  size_t tests = 0;
  std::vector<SkippedTest> skipped;
};

/// Reads the text of a JUnit file. The tests of a GoogleTest program count each; a skipped one's
/// reason is what it told GoogleTest. Of other programs it is what ctest says. Throws Error if the
/// text is not a JUnit file.
TestReport parse_junit(const std::string& text);

}  // namespace checker
