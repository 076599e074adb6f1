#pragma once
/// The checks of ./workbook doctor, in the order of its report.
#include <vector>

#include "doctor/health_check.hpp"
#include "support/project.hpp"

namespace checker::doctor {

/// What we are on: a node that Slurm gave to a job has no network and needs no compiler.
struct Place {
  const Project& project;
  bool compute_node = false;
};

Place this_place(const Project& project);

/// Compiler, LibTorch, programs and torchrun.
std::vector<HealthCheck> examine_software(const Place& place);
/// CUDA toolkit, driver, GPUs, NCCL.
std::vector<HealthCheck> examine_gpus(const Place& place);
/// Slurm, the site file and its interface.
std::vector<HealthCheck> examine_cluster(const Place& place);
/// Disk, shared memory, limits, clock.
std::vector<HealthCheck> examine_machine(const Place& place);

}  // namespace checker::doctor
