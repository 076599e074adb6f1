#include "monitor/figures.hpp"

#include <algorithm>
#include <set>

#include "monitor/lateness.hpp"
#include "monitor/words.hpp"

namespace checker::monitor {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double seconds_in(const RankRecord& record, Phase phase) {
  double sum = 0;
  for (const auto& span : record.spans) {
    if (span.phase == phase) sum += span.end - span.begin;
  }
  return sum;
}

// After the last bucket of gradients is on its way, backward() has nothing to compute any more.
double waiting_share(const RankRecord& record) {
  double waits = 0, steps = 0;
  std::vector<Collective> by_begin(record.collectives);
  std::ranges::sort(by_begin, {}, &Collective::begin);
  auto next = by_begin.begin();
  std::map<uint64_t, double> durations;
  for (const auto& step : record.steps) durations[step.number] = step.duration();
  for (const auto& span : record.spans) {
    if (span.phase != Phase::backward) continue;
    const auto duration = durations.find(span.step);
    if (duration == durations.end()) continue;
    steps += duration->second;
    double last = -1;
    while (next != by_begin.end() && next->begin < span.end) {
      if (next->begin >= span.begin) last = next->begin;
      ++next;
    }
    if (last >= 0) waits += span.end - last;
  }
  return ratio(waits, steps);
}

RankFigures figures_of_rank(const RankRecord& record) {
  RankFigures figures;
  figures.rank = record.rank();
  double time = 0, seen = 0, targets = 0, collectives = 0;
  std::vector<double> durations;
  durations.reserve(record.steps.size());
  for (const auto& step : record.steps) {
    durations.push_back(step.duration());
    time += step.duration();
    targets += step.targets;
    collectives += step.collectives;
    for (size_t i = 0; i < kStepPhases; ++i) figures.shares[i] += step.phases[i];
    if (step.is_replay()) {
      ++figures.replays;
    } else {
      seen += step.duration();
    }
  }
  for (size_t i = 0; i < kStepPhases; ++i) {
    figures.shares[i] = ratio(figures.shares[i], i == 0 ? time : seen);
  }
  if (tells_times(record)) figures.collectives = ratio(collectives, time);
  figures.tokens_per_second = ratio(targets, time);
  figures.targets_per_step = ratio(targets, static_cast<double>(record.steps.size()));
  figures.step_time = median(std::move(durations));
  if (!record.steps.empty()) figures.first_step = record.steps.front().begin;
  if (!record.device.starts_with("cuda")) figures.waiting = waiting_share(record);
  figures.evaluation = seconds_in(record, Phase::evaluation);
  figures.checkpoints = seconds_in(record, Phase::checkpoint);
  if (!record.process.empty()) {
    const auto& first = record.process.front();
    const auto& last = record.process.back();
    figures.cpus = ratio(static_cast<double>(last.sample.cpu - first.sample.cpu) * 1e-9,
                         last.time - first.time);
    figures.peak = static_cast<double>(last.sample.peak);
  }
  return figures;
}

void add_lateness(const Run& run, Figures& figures) {
  if (!std::ranges::all_of(run.ranks, tells_times)) return;
  std::vector<std::vector<double>> late(run.ranks.size());
  std::vector<double> last(run.ranks.size());
  for (const auto& meeting : meetings_of(run)) {
    const bool on_gpus = meeting.parts.front()->on_gpu > 0;
    if (on_gpus && !synchronizes(meeting.parts.front()->op_type)) continue;
    ++figures.compared;
    std::vector<std::pair<double, size_t>> begins;  // sorted, with the index of the rank
    const auto arrivals = arrivals_at(meeting);
    for (size_t i = 0; i < arrivals.size(); ++i) {
      begins.emplace_back(arrivals[i], meeting.ranks[i]);
    }
    std::ranges::sort(begins);
    const size_t middle = (begins.size() - 1) / 2;  // of all but one
    for (size_t i = 0; i < begins.size(); ++i) {
      const double others = begins[middle < i ? middle : middle + 1].first;
      late[begins[i].second].push_back(begins[i].first - others);
    }
    last[begins.back().second] += 1;
  }
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto count = static_cast<double>(late[rank].size());
    figures.ranks[rank].last = ratio(last[rank], count);
    figures.ranks[rank].lateness = median(std::move(late[rank]));
  }
}

// When steps ran, of any rank.
std::pair<double, double> training_time(const Run& run) {
  double begin = run.duration(), end = 0;
  for (const auto& record : run.ranks) {
    if (record.steps.empty()) continue;
    begin = std::min(begin, record.steps.front().begin);
    end = std::max(end, record.steps.back().end);
  }
  return begin < end ? std::pair(begin, end) : std::pair(0.0, run.duration());
}

GpuFigures figures_of_gpu(GpuFigures gpu, std::pair<double, double> training) {
  double sum = 0, count = 0;
  const At<GpuSample>* former = nullptr;
  for (const auto& at : gpu.samples) {
    gpu.peak = std::max(gpu.peak, static_cast<double>(at.sample.used));
    gpu.total = static_cast<double>(at.sample.total);
    const bool known = at.sample.utilisation != kUnknown;
    if (known && at.time >= training.first && at.time <= training.second + 1) {
      sum += at.sample.utilisation / 100.0;
      count += 1;
    }
    if (former && at.sample.milliwatts != kUnknown) {
      gpu.joules += at.sample.milliwatts * 1e-3 * (at.time - former->time);
    }
    former = &at;
  }
  if (count > 0) gpu.utilisation = sum / count;
  return gpu;
}

// Several ranks of a node may have looked at one GPU: the first one's samples count.
std::vector<GpuFigures> gpus_of(const Run& run) {
  std::vector<GpuFigures> gpus;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& record : run.ranks) {
    for (const auto& [number, name] : record.gpu_names) {
      if (!seen.emplace(record.host(), name).second) continue;
      GpuFigures gpu;
      gpu.host = record.host();
      gpu.name = name.substr(std::min(name.size(), name.find(' ') + 1));
      gpu.number = number;
      for (const auto& at : record.gpus) {
        if (at.sample.number == number) gpu.samples.push_back(at);
      }
      gpus.push_back(figures_of_gpu(std::move(gpu), training_time(run)));
    }
  }
  return gpus;
}

std::vector<NodeFigures> nodes_of(const Run& run) {
  std::vector<NodeFigures> nodes;
  for (const auto& record : run.ranks) {
    if (record.node.empty()) continue;
    const auto& first = record.node.front().sample;
    const auto& last = record.node.back().sample;
    NodeFigures node{.host = record.host(),
                     .cpus = static_cast<double>(last.cpus),
                     .busy = ratio(static_cast<double>(last.busy - first.busy),
                                   static_cast<double>(last.ticks - first.ticks)),
                     .least_available = static_cast<double>(first.available),
                     .total = static_cast<double>(first.total)};
    for (const auto& at : record.node) {
      node.least_available =
          std::min(node.least_available, static_cast<double>(at.sample.available));
    }
    nodes.push_back(node);
  }
  return nodes;
}

std::vector<CollectiveFigures> collectives_of(const Run& run) {
  std::map<std::string, CollectiveFigures> by_name;
  const auto ranks = static_cast<double>(run.ranks.size());
  for (const auto& record : run.ranks) {
    for (const auto& [type, sum] : record.traffic) {
      const std::string name(collective_name(type));
      auto& figures = by_name[name];
      figures.name = name;
      figures.calls += static_cast<double>(sum.calls) / ranks;
      figures.bytes += static_cast<double>(sum.bytes) / ranks;
      figures.seconds += static_cast<double>(sum.nanoseconds) * 1e-9 / ranks;
    }
  }
  std::vector<CollectiveFigures> all;
  for (auto& [name, figures] : by_name) all.push_back(std::move(figures));
  std::ranges::sort(all, std::ranges::greater(), &CollectiveFigures::bytes);
  return all;
}

// The mean of all ranks' known losses in ten steps from `first` on.
std::optional<double> loss_near(const Run& run, uint32_t first) {
  double sum = 0, count = 0;
  for (const auto& record : run.ranks) {
    for (const auto& step : record.steps) {
      if (step.number < first || step.number >= first + 10 || std::isnan(step.loss)) continue;
      sum += step.loss;
      count += 1;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

void add_losses(const Run& run, Figures& figures) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const auto& record : run.ranks) {
    for (const auto& step : record.steps) {
      if (std::isnan(step.loss)) continue;
      first = std::min(first, step.number);
      last = std::max(last, step.number);
    }
  }
  if (last == 0) return;
  figures.first_loss = loss_near(run, first);
  figures.last_loss = loss_near(run, last >= 9 ? last - 9 : 0);
}

// Ranks share a split, so that each knows a part of its loss.
void add_evaluations(const Run& run, Figures& figures) {
  struct Parts {
    double time = 0, sum = 0, count = 0;
  };
  std::map<std::pair<std::string, uint64_t>, Parts> all;
  for (const auto& record : run.ranks) {
    for (const auto& [time, part] : record.evaluations) {
      auto& parts = all[{part.split, part.step}];
      parts.time = std::max(parts.time, time);
      parts.sum += part.sum;
      parts.count += part.count;
    }
  }
  for (const auto& [name, parts] : all) {
    const auto& [split, step] = name;
    const double loss = parts.sum / parts.count;
    figures.evaluations.push_back({split, static_cast<double>(step), parts.time, loss});
    auto& best = figures.best_validation;
    if (split == "validation" && !(best && *best <= loss)) best = loss;
  }
}

}  // namespace

std::string replays_in_words(const Figures& figures) {
  return "repeats " + std::to_string(figures.replays) +
         " of the steps. Their times come from the GPU. Shares of forward, backward and optimizer "
         "come from the other steps";
}

bool tells_times(const RankRecord& record) {
  return !record.device.starts_with("cuda") ||
         std::ranges::any_of(record.collectives, [](const auto& call) { return call.on_gpu > 0; });
}

Figures figures_of(const Run& run) {
  Figures figures;
  figures.duration = run.duration();
  std::vector<double> durations;
  for (const auto& record : run.ranks) {
    figures.ranks.push_back(figures_of_rank(record));
    figures.steps = std::max(figures.steps, record.steps.size());
    figures.replays = std::max(figures.replays, figures.ranks.back().replays);
    figures.tokens_per_second += figures.ranks.back().tokens_per_second;
    if (!record.steps.empty()) durations.push_back(figures.ranks.back().step_time);
  }
  figures.step_time = median(std::move(durations));
  add_lateness(run, figures);
  add_losses(run, figures);
  add_evaluations(run, figures);
  figures.gpus = gpus_of(run);
  figures.nodes = nodes_of(run);
  figures.collectives = collectives_of(run);
  const double hours = figures.duration / 3600;
  figures.gpu_hours = hours * static_cast<double>(figures.gpus.size());
  for (const auto& gpu : figures.gpus) figures.watt_hours += gpu.joules / 3600;
  for (const auto& rank : figures.ranks) figures.core_hours += rank.cpus * hours;
  return figures;
}

}  // namespace checker::monitor
