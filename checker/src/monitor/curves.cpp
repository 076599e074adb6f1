#include "monitor/curves.hpp"

#include <algorithm>
#include <cmath>

namespace checker::monitor {

namespace {

// One step of all ranks.
struct Together {
  uint32_t number = 0;
  double loss = 0, losses = 0;
  double targets = 0;
  double longest = 0, end = 0;
  double learning_rate = 0;
};

// In their order. Numbers follow each other, but for what is damaged.
std::vector<Together> steps_together(const Run& run) {
  uint32_t first = UINT32_MAX, last = 0;
  for (const auto& record : run.ranks) {
    for (const auto& step : record.steps) {
      first = std::min(first, step.number);
      last = std::max(last, step.number);
    }
  }
  if (last < first) return {};
  constexpr uint32_t kMost = 50'000'000;  // no damaged number may take all memory
  std::vector<Together> steps(std::min(last - first, kMost) + 1);
  for (const auto& record : run.ranks) {
    for (const auto& step : record.steps) {
      if (step.number - first >= steps.size()) continue;
      auto& all = steps[step.number - first];
      all.number = step.number;
      if (!std::isnan(step.loss)) {
        all.loss += step.loss;
        all.losses += 1;
      }
      all.targets += step.targets;
      all.longest = std::max(all.longest, step.duration());
      all.end = std::max(all.end, step.end);
      all.learning_rate = step.learning_rate;
    }
  }
  std::erase_if(steps, [](const Together& step) { return step.number == 0; });
  return steps;
}

std::vector<Point> losses_of(const std::vector<Together>& steps) {
  std::vector<Point> points;
  for (const auto& step : steps) {
    if (step.losses > 0) points.push_back({double(step.number), step.loss / step.losses});
  }
  return points;
}

std::vector<Point> losses_in_time(const std::vector<Together>& steps) {
  std::vector<Point> points;
  for (const auto& step : steps) {
    if (step.losses > 0) points.push_back({step.end, step.loss / step.losses});
  }
  std::ranges::sort(points, {}, &Point::x);
  return points;
}

Series validation_of(const Figures& figures, double EvaluationFigures::*x) {
  Series series{"validation", {}};
  for (const auto& one : figures.evaluations) {
    if (one.split == series.name) series.points.push_back({one.*x, one.loss});
  }
  return series;
}

std::string name_of_rank(const RankRecord& record) {
  return "rank " + std::to_string(record.rank());
}

// What a counter grew by each second.
template <class Sample, class Counter>
std::vector<Point> rate_of(const std::vector<At<Sample>>& samples, double scale, Counter counter) {
  std::vector<Point> points;
  for (size_t i = 1; i < samples.size(); ++i) {
    const double time = samples[i].time - samples[i - 1].time;
    const auto now = counter(samples[i].sample), before = counter(samples[i - 1].sample);
    if (time <= 0 || now < before) continue;
    points.push_back({samples[i].time, scale * static_cast<double>(now - before) / time});
  }
  return points;
}

template <class Sample, class Value>
std::vector<Point> values_of(const std::vector<At<Sample>>& samples, Value value) {
  std::vector<Point> points;
  for (const auto& at : samples) points.push_back({at.time, value(at.sample)});
  return points;
}

double known(uint32_t value) { return value == kUnknown ? std::nan("") : value; }

template <class Value>
Chart of_gpus(const Figures& figures, const std::string& title, const std::string& unit,
              Value value) {
  Chart chart{.title = title, .y_unit = unit, .series = {}};
  for (const auto& gpu : figures.gpus) {
    chart.series.push_back(
        {gpu.host + " GPU " + std::to_string(gpu.number), values_of(gpu.samples, value)});
  }
  return chart;
}

void add_gpu_curves(const Figures& figures, std::vector<Chart>& charts) {
  charts.push_back(of_gpus(figures, "GPU utilisation", "%",
                           [](const GpuSample& gpu) { return known(gpu.utilisation); }));
  charts.push_back(of_gpus(figures, "GPU memory in use", "B",
                           [](const GpuSample& gpu) { return static_cast<double>(gpu.used); }));
  charts.push_back(of_gpus(figures, "GPU power", "W",
                           [](const GpuSample& gpu) { return known(gpu.milliwatts) * 1e-3; }));
  charts.push_back(of_gpus(figures, "GPU clock", "MHz",
                           [](const GpuSample& gpu) { return known(gpu.sm_clock); }));
}

Chart node_load(const Run& run) {
  Chart chart{.title = "CPUs of the nodes", .note = "all programs", .y_unit = "%", .series = {}};
  for (const auto& record : run.ranks) {
    std::vector<Point> points;
    for (size_t i = 1; i < record.node.size(); ++i) {
      const auto& before = record.node[i - 1].sample;
      const auto& now = record.node[i].sample;
      if (now.ticks <= before.ticks || now.busy < before.busy) continue;
      points.push_back({record.node[i].time, 100.0 * static_cast<double>(now.busy - before.busy) /
                                                 static_cast<double>(now.ticks - before.ticks)});
    }
    if (!points.empty()) chart.series.push_back({record.host(), std::move(points)});
  }
  return chart;
}

}  // namespace

std::vector<Point> loss_by_step(const Run& run) { return losses_of(steps_together(run)); }

std::vector<Point> loss_by_time(const Run& run) { return losses_in_time(steps_together(run)); }

std::vector<Chart> training_curves(const Run& run, const Figures& figures) {
  const auto steps = steps_together(run);
  Series speed{"tokens/s", {}}, rate{"learning rate", {}};
  for (const auto& step : steps) {
    if (step.longest > 0) speed.points.push_back({step.end, step.targets / step.longest});
    rate.points.push_back({static_cast<double>(step.number), step.learning_rate});
  }
  std::ranges::sort(speed.points, {}, &Point::x);
  const std::string mean = run.ranks.size() > 1 ? "mean of the ranks" : "";
  std::vector<Chart> charts;
  charts.push_back(
      {.title = "Loss by step",
       .note = mean,
       .x_unit = "step",
       .series = {{"training", losses_of(steps)}, validation_of(figures, &EvaluationFigures::step)},
       .from_zero = false});
  charts.push_back({.title = "Loss over time",
                    .note = mean,
                    .series = {{"training", losses_in_time(steps)},
                               validation_of(figures, &EvaluationFigures::time)},
                    .from_zero = false});
  charts.push_back({.title = "Speed",
                    .note = "tokens/s of all ranks together, step by step",
                    .series = {std::move(speed)}});
  Chart times{
      .title = "Time of a step", .x_unit = "step", .y_unit = "s", .series = {}, .cuts_peaks = true};
  for (const auto& record : run.ranks) {
    Series series{name_of_rank(record), {}};
    for (const auto& step : record.steps) {
      series.points.push_back({static_cast<double>(step.number), step.duration()});
    }
    times.series.push_back(std::move(series));
  }
  charts.push_back(std::move(times));
  Chart norms{.title = "Norm of the gradients", .note = "sampled", .x_unit = "step", .series = {}};
  for (const auto& record : run.ranks) {
    Series series{name_of_rank(record), {}};
    for (const auto& [time, gradients] : record.gradients) {
      series.points.push_back(
          {static_cast<double>(gradients.step), std::sqrt(gradients.sum_of_squares)});
    }
    norms.series.push_back(std::move(series));
  }
  charts.push_back(std::move(norms));
  charts.push_back({.title = "Learning rate", .x_unit = "step", .series = {std::move(rate)}});
  return charts;
}

std::vector<Chart> resource_curves(const Run& run, const Figures& figures) {
  std::vector<Chart> charts;
  add_gpu_curves(figures, charts);
  Chart cpus{.title = "CPUs that a rank keeps busy", .series = {}};
  Chart memory{.title = "Memory of a rank", .y_unit = "B", .series = {}};
  Chart storage{.title = "Read from and written to storage", .y_unit = "B/s", .series = {}};
  for (const auto& record : run.ranks) {
    const auto name = name_of_rank(record);
    cpus.series.push_back({name, rate_of(record.process, 1e-9,
                                         [](const ProcessSample& sample) { return sample.cpu; })});
    memory.series.push_back({name, values_of(record.process, [](const ProcessSample& sample) {
                               return static_cast<double>(sample.resident);
                             })});
    storage.series.push_back({name, rate_of(record.process, 1, [](const ProcessSample& sample) {
                                return sample.read + sample.written;
                              })});
  }
  charts.push_back(std::move(cpus));
  charts.push_back(node_load(run));
  charts.push_back(std::move(memory));
  charts.push_back(std::move(storage));
  return charts;
}

}  // namespace checker::monitor
