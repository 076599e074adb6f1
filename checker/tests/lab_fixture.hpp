#pragma once
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>

#include "lab/lab.hpp"
#include "support/files.hpp"

namespace checker::testing {

/// Labs in a registry of the test's own; skipped where there can be none.
class LabTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// A script, run by sh: what it prints on both streams and its exit status. Unlike run_program()
  /// it does not end what outlives the script. `$checker` is the program.
  struct Said {
    int status = 0;
    std::string text;
  };
  Said sh(const std::string& script) const;

  /// A program that the daemons find before the real one.
  void stand_in(const std::string& name, const std::string& script) const;

  /// Waits for a condition, two minutes at most; throws Error without it.
  static void wait_until(const std::string& what, const std::function<bool()>& condition);

  /// Nothing is left of a lab that was in these namespaces, once any lab call was made.
  void expect_nothing_left(const std::set<std::string>& namespaces) const;

  std::filesystem::path registry() const { return folder_.path() / "labs"; }
  std::filesystem::path scratch() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::string path_before_;
};

/// Runs a script on the login node and expects it to succeed; what it printed.
std::string run_in(const Lab& lab, const std::string& script,
                   const std::filesystem::path& directory = {});

/// The first process of the lab: the parent of its daemons.
pid_t first_process_of(const std::string& name);

/// A daemon of this lab, by its program's name.
pid_t daemon_of(const std::string& lab, const std::string& program);

}  // namespace checker::testing
