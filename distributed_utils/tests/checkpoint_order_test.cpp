// A power failure keeps what was synced, in any order. So the order of system calls of a save is
// looked at: nothing gets its name before it is on disk.
#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>

#include "children.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "ranks.hpp"
#include "small_run.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;

/// Files written, synced and renamed: "write <path>", "sync <path>", "rename <from> <to>".
using Events = std::vector<std::string>;

std::string text_of(pid_t child, uint64_t address) {
  std::ifstream memory("/proc/" + std::to_string(child) + "/mem", std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(address));
  std::string text;
  std::getline(memory, text, '\0');
  return text;
}

std::string path_of(pid_t child, uint64_t descriptor) {
  std::error_code ignored;
  const fs::path link = "/proc/" + std::to_string(child) + "/fd/" + std::to_string(descriptor);
  return fs::read_symlink(link, ignored).string();
}

void note(Events& events, pid_t child) {
  __ptrace_syscall_info call = {};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call) <= 0) return;
  if (call.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  const auto& arguments = call.entry.args;
  const auto renamed = [&](size_t from, size_t to) {
    events.push_back("rename " + text_of(child, arguments[from]) + " " +
                     text_of(child, arguments[to]));
  };
  switch (call.entry.nr) {
    case SYS_write:
      events.push_back("write " + path_of(child, arguments[0]));
      break;
    case SYS_fsync:
      events.push_back("sync " + path_of(child, arguments[0]));
      break;
#ifdef SYS_rename  // not on aarch64
    case SYS_rename:
      renamed(0, 1);
      break;
#endif
    case SYS_renameat:
    case SYS_renameat2:
      renamed(1, 3);
      break;
    default:
      break;
  }
}

TEST(SavesOrder, SyncsEverythingBeforeItGetsItsName) {
  const ranks::TemporaryFolder folder;
  SmallRun run(folder.path());
  run.save(1);
  children::Traced child = children::fork_traced([&] { run.save(2); });
  if (children::not_allowed(child)) GTEST_SKIP() << children::kNeedsTracing;
  Events events;
  while (children::next_stop(child)) note(events, child.pid);
  const auto first = [&](const std::string& event, size_t from = 0) {
    const auto found = std::find(events.begin() + static_cast<long>(from), events.end(), event);
    EXPECT_NE(found, events.end()) << "there is no " << event;
    return static_cast<size_t>(found - events.begin());
  };
  const auto last_write = [&](const std::string& path) {
    const auto found = std::find(events.rbegin(), events.rend(), "write " + path);
    EXPECT_NE(found, events.rend()) << path << " is not written";
    return events.size() - 1 - static_cast<size_t>(found - events.rbegin());
  };
  const std::string hidden = folder / ".step-000000002.tmp";
  const std::string final = folder / "step-000000002";
  const size_t commit = first("rename " + hidden + " " + final);
  size_t named = 0;
  for (const std::string name :
       {"model.safetensors", "optimizer.safetensors", "rank-0.safetensors", "manifest.json"}) {
    const std::string file = hidden + "/" + name;
    const std::string unnamed = file + "." + std::to_string(child.pid) + ".tmp";
    EXPECT_LE(named, first("write " + unnamed)) << name << " is written before the one before it";
    EXPECT_LT(last_write(unnamed), first("sync " + unnamed));
    named = first("rename " + unnamed + " " + file);
    EXPECT_LT(first("sync " + unnamed), named);
  }
  EXPECT_LT(named, first("sync " + hidden, named));
  EXPECT_LT(first("sync " + hidden, named), commit);
  const size_t done = first("sync " + folder.path().string(), commit);
  EXPECT_LT(done, events.size());
}

}  // namespace
}  // namespace distributed_utils
