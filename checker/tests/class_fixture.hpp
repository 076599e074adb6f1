#pragma once
/// Classes made up for tests.
#include "grade/class_report.hpp"
#include "student.hpp"

namespace checker::testing {

/// The project's.
const Ladder& ladder();
std::set<int> todos();

grade::Student student(const std::string& name, std::vector<Report> reports);
/// Of step 05: TODO 10 is wrong.
Report half_done();
grade::ClassReport class_of(std::vector<grade::Student> students);

}  // namespace checker::testing
