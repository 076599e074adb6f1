#pragma once
/// Starts one process.
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "process/descriptor.hpp"

namespace checker {

class ForkServer;

struct Command {
  std::vector<std::string> arguments;    ///< the program (looked up in PATH) and its arguments
  std::vector<std::string> environment;  ///< "NAME=value", over our own
  std::filesystem::path directory;       ///< where it runs; empty: where we are
  uint64_t largest_file = 0;             ///< bytes that a file of its may grow to; 0: no limit
  bool only_environment = false;         ///< nothing of our own environment
  int socket = -1;                       ///< stays open for it; -1: none does
  /// Forks the process from this program, which is loaded, instead of starting it. Null: start it.
  const ForkServer* server = nullptr;
};

/// Where a process's standard output and error go.
struct Wiring {
  bool pipe_output = true;  ///< to us, else where ours goes
  bool pipe_error = true;
};

/// A running process, the leader of a process group of its own.
struct Process {
  pid_t pid = -1;
  Descriptor output;  ///< to be read, does not block; open only if piped
  Descriptor error;
};

/// Starts the process with no standard input. It gets SIGKILL if we die. Throws Error naming the
/// program if it cannot be started.
Process spawn(const Command& command, Wiring wiring);

/// How a process ended.
struct Exit {
  int code = 0;    ///< exit status, if it ended by itself
  int signal = 0;  ///< the signal that killed it, else 0

  bool success() const { return code == 0 && signal == 0; }
  /// What a shell would report: the code, or 128 + signal.
  int status() const { return signal ? 128 + signal : code; }
  /// "exit status 3", "killed by signal 11 (Segmentation fault)".
  std::string describe() const;
};

}  // namespace checker
