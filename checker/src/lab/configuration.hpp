#pragma once
/// The files that make Slurm play a cluster on one machine.
#include <filesystem>
#include <string>

#include "lab/options.hpp"

namespace checker {

/// The controller's machine; the nodes are n1, n2, ...
inline constexpr const char* lab_controller = "ctl";
/// Slurm's own port of the controller.
inline constexpr int lab_controller_port = 6817;

std::string node_name(size_t number);
/// The same addresses in every lab: a lab's network is connected with no other.
std::string node_address(size_t number);
std::string controller_address();

/// `folder` is where all files of the lab are, for those within it.
std::string slurm_conf(const LabOptions& options, const std::filesystem::path& folder);
std::string gres_conf(const LabOptions& options, const std::filesystem::path& folder);
std::string lab_hosts(const LabOptions& options);

/// Whether the options make sense; throws Error.
void check_options(const LabOptions& options);

}  // namespace checker
