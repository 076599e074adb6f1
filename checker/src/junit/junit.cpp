#include "junit/junit.hpp"

#include <algorithm>
#include <cctype>
#include <pugixml.hpp>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

constexpr std::string_view kSkipped = "[  SKIPPED ] ";

// What a GoogleTest program said of its tests. Of a skipped one it prints "file:line: Skipped",
// then the reason, then an empty line or its next mark.
TestReport gtest_report(const std::string& output) {
  TestReport report;
  std::string reason;
  bool inside = false;
  for (const auto& line : split_lines(output)) {
    const auto text = trim(line);
    if (text.empty() || text.starts_with("[")) inside = false;
    if (text.starts_with("[ RUN      ] ")) {
      ++report.tests;
      reason.clear();
    } else if (text.starts_with(kSkipped) && text.ends_with(" ms)")) {
      const auto name = text.substr(kSkipped.size());
      report.skipped.push_back({std::string(name.substr(0, name.rfind(" ("))), reason});
    }
    if (inside) reason.append(reason.empty() ? "" : " ").append(text);
    if (text.ends_with(": Skipped")) inside = true;
  }
  return report;
}

// What a script said last, which is its reason; ctest's own word knows none.
std::string script_reason(std::string_view output, std::string_view word) {
  const auto lines = split_lines(trim(output));
  const std::string_view last = lines.empty() ? word : std::string_view(lines.back());
  constexpr std::string_view kMark = "skipped: ";
  const bool marked = last.size() > kMark.size() &&
                      std::ranges::equal(last.substr(0, kMark.size()), kMark, {},
                                         [](unsigned char c) { return std::tolower(c); });
  return std::string(marked ? last.substr(kMark.size()) : last);
}

}  // namespace

TestReport parse_junit(const std::string& text) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(text.data(), text.size());
  const auto suite = document.child("testsuite");
  if (!parsed || !suite) {
    throw Error(std::string("Cannot read ctest's JUnit file: ") + parsed.description() + ".");
  }
  TestReport report;
  for (const auto test : suite.children("testcase")) {
    const auto said = gtest_report(test.child("system-out").text().as_string());
    report.tests += std::max<size_t>(said.tests, 1);
    report.skipped.insert(report.skipped.end(), said.skipped.begin(), said.skipped.end());
    const auto skipped = test.child("skipped");
    const std::string status = test.attribute("status").as_string();
    if (!said.skipped.empty() || (!skipped && status != "disabled" && status != "notrun")) continue;
    report.skipped.push_back(
        {test.attribute("name").as_string(),
         script_reason(test.child("system-out").text().as_string(),
                       skipped.attribute("message").as_string(status.c_str()))});
  }
  return report;
}

}  // namespace checker
