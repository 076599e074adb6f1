#pragma once
/// Runs whose results are compared: each solution in both precisions, on one rank and on two.
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "course/programs.hpp"
#include "golden/results.hpp"

namespace checker::golden {

constexpr size_t kSteps = 20;

/// A solution. Until one rank writes for all, each rank writes its files into a folder of its own.
struct Solution : Program {
  bool one_folder = false;
};

/// What one rank left behind.
struct Left {
  Result result;          ///< of ranks with one folder, rank 0 has the file of parameters
  bool recorded = false;  ///< its log is one that we read
  std::vector<double> printed = {};  ///< the losses in its words, which have fewer digits
};

/// By the names that Results have.
using AllLeft = std::map<std::string, Left>;

/// Runs solution programs with this configuration, as many at a time as there are cores;
/// on_progress is told how many of how many ranks have begun. Throws Error if one fails.
AllLeft run_solutions(std::span<const Solution> programs, const std::filesystem::path& config,
                      const std::function<void(size_t begun, size_t all)>& on_progress = {});

/// Whether everything was recorded.
bool all_recorded(const AllLeft& left);

/// What was recorded; or, where two commits record differently, what was printed and saved.
Results recorded_results(const AllLeft& left);
Results printed_results(const AllLeft& left);

/// The losses in lines that a rank printed.
std::vector<double> losses_in(std::span<const std::string> lines);

}  // namespace checker::golden
