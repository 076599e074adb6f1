#include "junit/junit.hpp"

#include <pugixml.hpp>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

// GoogleTest prints "file:line: Skipped", then the reason, then an empty line or its next mark.
std::string gtest_reason(const std::string& output) {
  std::string reason;
  bool inside = false;
  for (const auto& line : split_lines(output)) {
    const auto text = trim(line);
    if (inside && (text.empty() || text.starts_with("["))) break;
    if (inside) reason.append(reason.empty() ? "" : " ").append(text);
    if (text.ends_with(": Skipped")) inside = true;
  }
  return reason;
}

}  // namespace

TestReport parse_junit(const std::string& text) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(text.data(), text.size());
  const auto suite = document.child("testsuite");
  if (!parsed || !suite) {
    throw Error(std::string("ctest's JUnit file cannot be read: ") + parsed.description() + ".");
  }
  TestReport report;
  for (const auto test : suite.children("testcase")) {
    ++report.tests;
    const auto skipped = test.child("skipped");
    const std::string status = test.attribute("status").as_string();
    if (!skipped && status != "disabled" && status != "notrun") continue;
    auto reason = gtest_reason(test.child("system-out").text().as_string());
    if (reason.empty()) reason = skipped.attribute("message").as_string(status.c_str());
    report.skipped.push_back({test.attribute("name").as_string(), reason});
  }
  return report;
}

}  // namespace checker
