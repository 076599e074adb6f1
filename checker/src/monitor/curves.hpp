#pragma once
/// The curves of a run.
#include <string>
#include <vector>

#include "monitor/chart.hpp"
#include "monitor/figures.hpp"

namespace checker::monitor {

/// Loss, learning rate, speed and step time; what is not known has no chart.
std::vector<Chart> training_curves(const Run& run, const Figures& figures);
/// Utilisation, memory, power and clock of each GPU; CPUs, memory, I/O of ranks and nodes.
std::vector<Chart> resource_curves(const Run& run, const Figures& figures);

/// The mean of the ranks' losses by step; by the time at which the step ended.
std::vector<Point> loss_by_step(const Run& run);
std::vector<Point> loss_by_time(const Run& run);

}  // namespace checker::monitor
