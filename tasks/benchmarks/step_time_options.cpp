#include "step_time_options.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "tasks/config.hpp"

namespace step_time {
namespace {

constexpr const char* kHelp =
    R"(step_time [--ranks=N] [--nodes=N] [--steps=N] [--repeats=N] [--vocabulary=N] [--bucket-mb=N]
          [--bucket-views] [--compress] [--losses=FILE] [--trace=FILE] [--text=FOLDER]
          [--benchmark_...] [a trainer's options]

Times the training step of a task: --repeats times --steps steps, with the loader and with one
batch again and again; the difference is what the loader costs. --ranks starts that many on this
machine, and --nodes makes NCCL take it for so many: halves of the ranks, say, then talk over TCP,
not NVLink. Under torchrun it is one of torchrun's ranks. Without --data it trains on a text that it
writes, of --vocabulary words. --compress lets gradients travel as bf16. Instead of timing, --losses
writes one loss a line, and --trace what five steps of rank 0 ran when, for chrome://tracing or
ui.perfetto.dev; --text writes the text and nothing else.
For example:
  step_time --config seed --precision tf32 --fast --benchmark_out=step.json
)";

/// The rest of `argument` if it begins with `name`.
std::optional<std::string> value_of(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name)) return std::nullopt;
  return std::string(argument.substr(name.size()));
}

bool take(Settings& settings, std::string_view argument) {
  const auto number = [&](std::string_view name, auto& into, int64_t most) {
    const auto text = value_of(argument, name);
    if (!text) return false;
    into = static_cast<std::decay_t<decltype(into)>>(
        tasks::parse_integer({*text, std::string(name.substr(0, name.size() - 1))}, 1, most));
    return true;
  };
  int64_t megabytes = 0;
  if (number("--bucket-mb=", megabytes, 1 << 20)) {
    settings.bucket_bytes = megabytes << 20;
    return true;
  }
  if (argument == "--bucket-views") return settings.bucket_views = true;
  if (argument == "--compress") return settings.compress = true;
  if (auto file = value_of(argument, "--losses=")) {
    settings.losses = std::move(file);
    return true;
  }
  if (auto folder = value_of(argument, "--text=")) {
    settings.text = std::move(folder);
    return true;
  }
  if (auto file = value_of(argument, "--trace=")) {
    settings.trace = std::move(file);
    return true;
  }
  return number("--ranks=", settings.ranks, 64) || number("--nodes=", settings.nodes, 64) ||
         number("--steps=", settings.steps, 1 << 20) ||
         number("--repeats=", settings.repeats, 1 << 20) ||
         number("--vocabulary=", settings.vocabulary, 1 << 24);
}

}  // namespace

Settings take_settings(int& argc, char** argv) {
  Settings settings;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      fmt::print("{}", kHelp);
      std::exit(0);
    }
    if (!take(settings, argv[i])) argv[kept++] = argv[i];
  }
  argc = kept;
  argv[argc] = nullptr;
  return settings;
}

}  // namespace step_time
