#pragma once
/// Compares several runs on one page: what more ranks or another setting bring.
#include <string>
#include <vector>

#include "monitor/figures.hpp"
#include "report/look.hpp"

namespace checker::monitor {

struct ComparedRun {
  std::string label;
  Run run;
  Figures figures;
};

/// How a run does against the first one.
struct Scaling {
  double speed_up = 0;    ///< of tokens/s
  double efficiency = 0;  ///< speed-up by how many times more ranks it has
};

std::vector<Scaling> scaling_of(const std::vector<ComparedRun>& runs);

std::string to_comparison_page(const std::vector<ComparedRun>& runs);
std::vector<std::string> to_comparison_lines(const std::vector<ComparedRun>& runs);

}  // namespace checker::monitor
