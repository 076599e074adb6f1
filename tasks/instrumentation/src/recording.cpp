#include "instrumentation/recording.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "foreign_groups.hpp"
#include "log_file.hpp"
#include "this_process.hpp"
#include "watcher.hpp"

namespace instrumentation::recording {
namespace {

LogFile* open_log(const std::string& path) {
  try {
    return new LogFile(path, describe_process());
  } catch (const distributed_utils::Error& error) {
    throw distributed_utils::Error(fmt::format(
        "WORLDSIZE_RECORD names no log. It must be a file, as long as the log may grow. {}",
        error.what()));
  }
}

/// Null if this process does not record. Leaked: ranks record until the very end.
LogFile* log() {
  static LogFile* const instance = [] {
    const auto path = distributed_utils::process_environment("WORLDSIZE_RECORD");
    if (!path || path->empty()) return static_cast<LogFile*>(nullptr);
    auto* made = open_log(*path);
    std::ifstream maps("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    made->append(Kind::maps, read_clock(CLOCK_MONOTONIC), std::as_bytes(std::span(text)));
    observe_foreign_groups();
    // NOLINTNEXTLINE(bugprone-unused-return-value): without it a regular exit looks like a crash,
    // no more
    (void)std::atexit([] { record(Kind::exit, {}); });
    return made;
  }();
  return instance;
}

// Before main(): a program may call setup() before anything else. The log itself is opened when
// something is first told, because one process may be forked into many ranks.
[[maybe_unused]] const bool watches = (watch_distributed_utils(), true);

}  // namespace

bool enabled() { return log() != nullptr; }

void record(Kind kind, std::span<const std::byte> payload) {
  if (LogFile* into = log()) into->append(kind, read_clock(CLOCK_MONOTONIC), payload);
}

void record_text(Kind kind, std::string_view text) {
  record(kind, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace instrumentation::recording
