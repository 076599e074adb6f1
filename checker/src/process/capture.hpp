#pragma once
/// Runs another program and returns its output.
#include <chrono>
#include <optional>
#include <string>

#include "process/spawn.hpp"

namespace checker {

struct Captured {
  int status = 0;            ///< as a shell reports it
  std::string output;        ///< standard output and error, each line with its end
  bool out_of_time = false;  ///< it was ended because of the limit
  int interrupted_by = 0;    ///< the signal that we got meanwhile and passed on

  bool success() const { return status == 0; }
};

/// Runs the command to its end, or until the limit. Throws Error if it cannot be started.
Captured capture(const Command& command, std::optional<std::chrono::milliseconds> limit = {});

}  // namespace checker
