#pragma once
/// How a class is graded: points, when work was due, and who should have handed in.
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace checker::grade {

using Time = std::chrono::sys_seconds;

struct Scheme {
  std::map<int, double> points;  ///< by TODO; every TODO of the course
  std::optional<Time> due;
  double late_factor = 1;                 ///< of the points of late work
  std::map<std::string, Time> handed_in;  ///< where the file's own time does not say it
  std::set<std::string> students;         ///< who should have handed in; may be empty
};

/// One point for every TODO.
Scheme plain_scheme(const std::set<int>& todos);

/// A YAML file:
///   points: {default: 1, TODO 8: 3}
///   due: 2026-12-01 18:00            # this machine's time zone
///   late: 0.5                        # of the points; 1 if it is not said
///   handed_in: {alice: 2026-11-30 12:00}
///   students: [alice, bob]
/// Throws Error "file:line: what".
Scheme read_scheme(const std::filesystem::path& file, const std::set<int>& todos);

/// "2026-12-01 18:00", in this machine's time zone.
std::string in_words(Time time);

}  // namespace checker::grade
