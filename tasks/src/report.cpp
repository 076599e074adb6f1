// The last words of a trainer that failed.
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <mutex>

#include "console/terminal.hpp"
#include "distributed_utils/peers.hpp"
#include "distributed_utils/print.hpp"
#include "tasks/checkpointing.hpp"
#include "tasks/options.hpp"

namespace tasks {
namespace {

std::string message(const std::exception& error) {
  // LibTorch's errors carry a backtrace that helps nobody who did not write LibTorch.
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  return error.what();
}

// For exceptions that nobody catches, as from NCCL's own thread when a time-out has passed. The
// process ends as it would have, by SIGABRT.
[[noreturn]] void speak_last_words() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    report(error);
  } catch (...) {
    fmt::print(stderr, "error: an exception that is not a std::exception\n");
  }
  std::abort();
}

}  // namespace

void report_uncaught() { std::set_terminate(speak_last_words); }

int report(const std::exception& error) {
  if (dynamic_cast<const Stopped*>(&error)) {
    distributed_utils::print0("{}", error.what());
    return 0;
  }
  // The first to fail has the word: what lost_peers() breaks off makes other threads fail, too, and
  // one of these would end the process.
  static std::mutex speaking;
  const std::lock_guard lock(speaking);
  const bool colors = console::has_colour(STDERR_FILENO);
  fmt::print(stderr, "{}error:{} {}\n", colors ? "\x1b[31m" : "", colors ? "\x1b[0m" : "",
             message(error));
  const auto lost = distributed_utils::lost_peers(error);
  if (!lost.empty()) {
    fmt::print(stderr, "       no answer from rank {}: it ended or hangs\n", fmt::join(lost, ", "));
  }
  return 1;
}

}  // namespace tasks
