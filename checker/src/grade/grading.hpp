#pragma once
/// Judges a class's hand-ins side by side, each by a process of its own.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "grade/class_report.hpp"
#include "grade/store.hpp"
#include "grade/submission.hpp"
#include "support/project.hpp"

namespace checker::grade {

struct GradingOptions {
  std::filesystem::path folder;  ///< of the hand-ins
  std::filesystem::path output;  ///< gets what workers need meanwhile
  Scheme scheme;
  size_t jobs = 1;
  bool unsafe = false;  ///< without the box
  /// Told what is going on, for a progress line; may be empty.
  std::function<void(size_t done, size_t all, std::string_view what)> on_progress = {};
};

/// Judges what the store does not hold yet and makes the report. Throws Error if it is interrupted;
/// what is judged by then is in the store.
ClassReport grade_class(const Project& project, const Course& course, const Submissions& hand_ins,
                        Store& store, const GradingOptions& options);

/// As many as the cores and the memory there are bear.
size_t fitting_jobs();

}  // namespace checker::grade
