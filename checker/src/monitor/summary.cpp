#include "monitor/summary.hpp"

#include "monitor/rules.hpp"
#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

constexpr size_t kName = 16, kMostRanks = 8;

std::string row(std::string name, const std::string& value) {
  name.resize(kName, ' ');
  return "  " + name + value;
}

std::string shares_of(const RankFigures& rank) {
  return "data " + shown_share(rank.shares[0]) + ", forward " + shown_share(rank.shares[1]) +
         ", backward " + shown_share(rank.shares[2]) + ", optimizer " + shown_share(rank.shares[3]);
}

std::string losses(const Figures& figures) {
  return fixed(*figures.first_loss, 3) + " to " + fixed(*figures.last_loss, 3);
}

void add_gpus(const Figures& figures, std::vector<std::string>& lines) {
  for (const auto& gpu : figures.gpus) {
    lines.push_back(row("GPU " + std::to_string(gpu.number),
                        (gpu.utilisation ? "busy " + shown_share(*gpu.utilisation) + ", " : "") +
                            shown_bytes(gpu.peak) + " of " + shown_bytes(gpu.total) + " (" +
                            gpu.host + ", " + gpu.name + ")"));
  }
  if (!figures.gpus.empty()) lines.push_back(row("GPU hours", fixed(figures.gpu_hours, 3)));
}

}  // namespace

std::vector<std::string> to_lines(const Run& run, const Figures& figures, const Look& look) {
  std::vector<std::string> lines;
  lines.push_back("Run of " + in_words(run.wall) + ": " + count_of(run.ranks.size(), "rank") +
                  " on " + join(run.hosts(), ", "));
  lines.push_back(row("duration", shown_seconds(figures.duration)));
  if (figures.steps > 0) {
    lines.push_back(row("steps", std::to_string(figures.steps) + ", " +
                                     shown_seconds(figures.step_time) + " each (median)"));
    if (figures.replays > 0) lines.push_back(row("CUDA graph", replays_in_words(figures)));
    lines.push_back(
        row("speed", shown_count(figures.tokens_per_second) + " tokens/s, all ranks together"));
  }
  if (figures.last_loss) lines.push_back(row("training loss", losses(figures)));
  for (size_t i = 0; i < std::min(figures.ranks.size(), kMostRanks); ++i) {
    const auto& rank = figures.ranks[i];
    if (rank.step_time > 0) {
      lines.push_back(row("rank " + std::to_string(rank.rank), shares_of(rank)));
    }
  }
  for (const auto& one : figures.collectives) {
    lines.push_back(row(one.name, shown_count(one.calls) +
                                      (one.calls == 1 ? " call, " : " calls, ") +
                                      shown_bytes(one.bytes) + " from each rank"));
  }
  add_gpus(figures, lines);
  lines.push_back(row("core hours", fixed(figures.core_hours, 3)));
  for (const auto& remark : run.remarks) append(lines, hanging_line(remark, 2, look));
  lines.emplace_back();
  for (const auto& sentence : limits_of(run, figures)) {
    for (const auto& line : hanging_line(sentence.what, 2, look)) {
      lines.push_back(look.styled(terminal::Style::bold, line));
    }
    if (!sentence.advice.empty()) append(lines, hanging_line(sentence.advice, 4, look));
  }
  return lines;
}

}  // namespace checker::monitor
