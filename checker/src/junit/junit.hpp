#pragma once
/// What ctest noted in its JUnit file.
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

/// Reads the text of a JUnit file. A skipped test's reason is what it told GoogleTest, else what
/// ctest says. Throws Error if it is none.
TestReport parse_junit(const std::string& text);

}  // namespace checker
