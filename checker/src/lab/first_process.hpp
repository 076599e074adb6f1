#pragma once
#include <filesystem>

#include "lab/options.hpp"
#include "process/descriptor.hpp"

namespace checker {

/// What the first process says on its line to the process that starts the lab, once all daemons
/// run. Anything else that it says is what went wrong.
inline constexpr const char* lab_started = "started";
/// What it is told if the lab is to go on without that process, instead of ending with it.
inline constexpr const char* lab_stays = "stay";

/// The life of a lab's first process, which is the controller's machine as well: makes it, starts
/// munged, slurmctld and the nodes, and returns when one of the two daemons or the line ends, or at
/// SIGTERM. `lock` stays open.
void be_first_process(const LabOptions& options, const std::filesystem::path& folder,
                      const Descriptor& line, const Descriptor& lock);

}  // namespace checker
