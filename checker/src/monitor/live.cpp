#include "monitor/live.hpp"

#include <algorithm>

#include "monitor/figures.hpp"
#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

constexpr size_t kMostLines = 16;  // of ranks, and of GPUs
constexpr double kSilent = 10;     // seconds without a record: several samples are missing

std::string padded_to(std::string text, size_t width) {
  const size_t taken = columns(text);
  return taken < width ? text + std::string(width - taken, ' ') : text;
}

// The records of the last seconds alone.
Run recent_part(const Run& run, double window) {
  const double from = run.duration() - window;
  Run recent = run;
  for (auto& record : recent.ranks) {
    std::erase_if(record.steps, [&](const Step& step) { return step.end < from; });
    std::erase_if(record.spans, [&](const Span& span) { return span.end < from; });
    std::erase_if(record.collectives, [&](const Collective& call) { return call.end < from; });
    std::erase_if(record.process, [&](const auto& at) { return at.time < from; });
    std::erase_if(record.node, [&](const auto& at) { return at.time < from; });
    std::erase_if(record.gpus, [&](const auto& at) { return at.time < from; });
  }
  return recent;
}

std::string rank_line(const Run& run, const RankRecord& record, const RankFigures& recent) {
  std::string line = "  " + padded_to("rank " + std::to_string(record.rank()), 9);
  line += padded_to(
      record.steps.empty() ? "no step yet" : "step " + std::to_string(record.steps.back().number),
      14);
  if (record.ended) return line + "ended";
  if (run.duration() - record.last > kSilent) {
    return line + "silent for " + shown_seconds(run.duration() - record.last);
  }
  if (recent.step_time <= 0) return line;
  return line + padded_to(shown_seconds(recent.step_time), 10) + "data " +
         padded_to(shown_share(recent.shares[0]), 6) + "forward " +
         padded_to(shown_share(recent.shares[1]), 6) + "backward " +
         padded_to(shown_share(recent.shares[2]), 6) + "optimizer " +
         padded_to(shown_share(recent.shares[3]), 6) + fixed(recent.cpus, 1) + " CPUs";
}

std::string more(size_t all) {
  return all > kMostLines ? "  … and " + std::to_string(all - kMostLines) + " more" : "";
}

}  // namespace

std::vector<std::string> live_lines(const Run& run, double window, const Look& look) {
  const auto recent = recent_part(run, window);
  const auto figures = figures_of(recent);
  size_t steps = 0;
  for (const auto& record : run.ranks) {
    if (!record.steps.empty()) steps = std::max<size_t>(steps, record.steps.back().number);
  }
  std::string head = "Run of " + in_words(run.wall) + ": " + count_of(run.ranks.size(), "rank") +
                     ", " + shown_seconds(run.duration()) + ", step " + std::to_string(steps);
  if (figures.last_loss) head += ", loss " + fixed(*figures.last_loss, 3);
  if (figures.tokens_per_second > 0) {
    head += ", " + shown_count(figures.tokens_per_second) + " tokens/s";
  }
  std::vector<std::string> lines{look.styled(terminal::Style::bold, head)};
  for (size_t i = 0; i < std::min(run.ranks.size(), kMostLines); ++i) {
    lines.push_back(rank_line(run, run.ranks[i], figures.ranks[i]));
  }
  if (const auto rest = more(run.ranks.size()); !rest.empty()) lines.push_back(rest);
  for (size_t i = 0; i < std::min(figures.gpus.size(), kMostLines); ++i) {
    const auto& gpu = figures.gpus[i];
    lines.push_back("  " + padded_to(gpu.host + " GPU " + std::to_string(gpu.number), 23) +
                    (gpu.utilisation ? "busy " + padded_to(shown_share(*gpu.utilisation), 7) : "") +
                    shown_bytes(gpu.peak) + " of " + shown_bytes(gpu.total));
  }
  if (const auto rest = more(figures.gpus.size()); !rest.empty()) lines.push_back(rest);
  return lines;
}

}  // namespace checker::monitor
