#pragma once
/// Starting runs of programs that can serve (see served.hpp) without loading them again each time.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "process/spawn.hpp"

namespace checker {

/// One program that serves. It ends with this object. While run_groups runs, none may be made.
class ForkServer {
 public:
  /// environment: as Command's; runs change what they need over it. What a library reads while it
  /// is loaded must be in here. Throws Error if the program does not start.
  ForkServer(const std::filesystem::path& program, const std::vector<std::string>& environment);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  /// Starts a run, a child of this process, and returns its id. output, error: where it writes; -1:
  /// where we do. Throws Error if that fails.
  pid_t start(const Command& command, int output, int error) const;

 private:
  std::string program_;
  Descriptor socket_;
  Process process_;
};

/// The servers of some programs, each started when it is first asked for.
class ForkServers {
 public:
  explicit ForkServers(std::vector<std::string> environment)
      : environment_(std::move(environment)) {}

  /// The program can serve. Several names of one file have one server.
  void add(const std::filesystem::path& program);
  /// Null if the program cannot serve.
  const ForkServer* of(const std::filesystem::path& program);

 private:
  struct Known {
    std::filesystem::path program;
    std::unique_ptr<ForkServer> server;
  };

  Known* find(const std::filesystem::path& program);

  std::vector<std::string> environment_;
  std::vector<Known> known_;
};

}  // namespace checker
