#pragma once
/// Writes a class's report as HTML, JSON, CSV and JUnit.
#include <string>
#include <vector>

#include "grade/class_report.hpp"

namespace checker::grade {

/// For programs; its schema is checker/src/grade/class.schema.json.
std::string to_json(const ClassReport& report);
/// For spreadsheets (RFC 4180): a student a line. What a spreadsheet would compute is made text.
std::string to_csv(const ClassReport& report);
/// A test suite for each student, a test case for each TODO.
std::string to_junit(const ClassReport& report);
/// One page that needs no network.
std::string to_html(const ClassReport& report);
/// For a terminal of so many columns: a student a line, and what fails most.
std::vector<std::string> to_lines(const ClassReport& report, size_t width);

}  // namespace checker::grade
