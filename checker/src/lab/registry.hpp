#pragma once
/// Lists the labs on this machine, started by anybody: a file and a folder for each in
/// /run/worldsize-lab (or $WORLDSIZE_LABS, so that tests see none but their own). The first process
/// of a lab holds a lock on the file, which the kernel releases when it dies: a file without a lock
/// is what a lab left behind, and every look at the registry removes it.
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "process/descriptor.hpp"

namespace checker {

struct LabRecord {
  std::string name{};
  pid_t first_process = 0;  ///< as the whole machine sees it; 0: it is only about to be started
  size_t nodes = 0;
  bool stays = false;  ///< left to itself by whoever started it, who may be a running check
};

/// A name that nobody else has, as long as we or a process that we forked meanwhile hold the lock.
struct LabClaim {
  std::string name;
  Descriptor lock;
};

/// An empty folder, over which the lab, and it alone, sees its own files.
std::filesystem::path lab_folder(const std::string& name);

/// Takes this name; if it is empty the first free of lab1, lab2, ... Throws Error if there is a lab
/// of this name or the name will not do.
LabClaim claim_lab(const std::string& name);

/// Says what a claimed name stands for, or that this has changed. Throws Error.
void record_lab(const LabRecord& lab);

/// All labs, in the order of their names. Throws Error if the registry cannot be read.
std::vector<LabRecord> present_labs();

}  // namespace checker
