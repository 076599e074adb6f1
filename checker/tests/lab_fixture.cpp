#include "lab_fixture.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "lab/impossible.hpp"
#include "lab/registry.hpp"
#include "lab_traces.hpp"
#include "process/family.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

void LabTest::SetUp() {
  if (const auto why = lab_impossible()) GTEST_SKIP() << *why;
  // Whoever asks munge for a credential must be able to reach its socket.
  fs::permissions(scratch(), fs::perms(0755));
  ::setenv("WORLDSIZE_LABS", registry().c_str(), 1);
  ::setenv("checker", CHECKER_PROGRAM, 1);
  path_before_ = std::getenv("PATH");
  ::setenv("PATH", (scratch() / "bin:").string().append(path_before_).c_str(), 1);
}

void LabTest::TearDown() {
  if (path_before_.empty()) return;
  for (const auto& lab : present_labs()) Lab::find(lab.name).end();
  ::setenv("PATH", path_before_.c_str(), 1);
}

LabTest::Said LabTest::sh(const std::string& script) const {
  const auto file = scratch() / "script", output = scratch() / "output";
  write_file(file, script);
  const auto command =
      "sh " + shell_quote(file.string()) + " >" + shell_quote(output.string()) + " 2>&1 </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_file(output)};
}

void LabTest::stand_in(const std::string& name, const std::string& script) const {
  write_file(scratch() / "bin" / name, "#!/bin/sh\n" + script + "\n");
  fs::permissions(scratch() / "bin" / name, fs::perms::owner_all);
}

void LabTest::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw Error("waited in vain until " + what);
    std::this_thread::sleep_for(50ms);
  }
}

void LabTest::expect_nothing_left(const std::set<std::string>& namespaces) const {
  ASSERT_GE(namespaces.size(), 15U) << "the lab and its two nodes had five each";
  EXPECT_EQ(traces_of(namespaces, registry()), "");
  present_labs();  // what every lab call does first
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(registry())) {
    files.insert(entry.path().filename());
  }
  EXPECT_THAT(files, ::testing::ElementsAre("turn"));
}

std::string run_in(const Lab& lab, const std::string& script, const fs::path& directory) {
  const auto run = lab.run({"bash", "-ec", script}, {}, directory, 120s);
  EXPECT_EQ(run.status, 0) << script << "\n" << run.output;
  return run.output;
}

pid_t first_process_of(const std::string& name) {
  const auto labs = present_labs();
  const auto lab = std::ranges::find(labs, name, &LabRecord::name);
  return lab == labs.end() ? 0 : lab->first_process;
}

pid_t daemon_of(const std::string& lab, const std::string& program) {
  for (const pid_t pid : children_of(first_process_of(lab))) {
    if (name_of(pid) == program) return pid;
  }
  return 0;
}

}  // namespace checker::testing
