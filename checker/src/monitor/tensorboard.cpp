#include "monitor/tensorboard.hpp"

#include <cmath>

#include "monitor/event_file.hpp"
#include "support/files.hpp"

namespace checker::monitor {

namespace {

void add_steps(const RankRecord& record, double wall, EventFile& events) {
  for (const auto& step : record.steps) {
    const auto scalar = [&](const char* tag, double value) {
      if (!std::isnan(value)) {
        events.scalar(wall + step.end, step.number, tag, static_cast<float>(value));
      }
    };
    scalar("training/loss", step.loss);
    scalar("training/learning rate", step.learning_rate);
    if (step.duration() > 0) scalar("training/tokens per second", step.targets / step.duration());
    scalar("step/seconds", step.duration());
    scalar("step/data", step.phases[0]);
    scalar("step/forward", step.phases[1]);
    scalar("step/backward", step.phases[2]);
    scalar("step/optimizer", step.phases[3]);
    scalar("step/collectives", step.collectives);
  }
}

// Of sizes, from 0 on.
Histogram histogram_of(const GradientSizesRecord& gradients) {
  Histogram histogram{.most = gradients.largest,
                      .count = static_cast<double>(gradients.zeros),
                      .sum = gradients.sum,
                      .sum_of_squares = gradients.sum_of_squares,
                      .limits = {std::exp2(kLeastGradient - 1)},
                      .counts = {static_cast<double>(gradients.zeros)}};
  for (size_t i = 0; i < kGradientBins; ++i) {
    histogram.count += gradients.bins[i];
    histogram.limits.push_back(std::exp2(kLeastGradient + static_cast<int>(i) + 1));
    histogram.counts.push_back(gradients.bins[i]);
  }
  return histogram;
}

// Samples belong to no step: they are numbered by milliseconds since the start.
void add_samples(const RankRecord& record, double wall, EventFile& events) {
  const auto scalar = [&](double time, const std::string& tag, double value) {
    events.scalar(wall + time, std::lround(time * 1e3), tag, static_cast<float>(value));
  };
  for (const auto& [time, sample] : record.process) {
    scalar(time, "rank/resident MiB", static_cast<double>(sample.resident) / (1 << 20));
    scalar(time, "rank/CPU seconds", static_cast<double>(sample.cpu) * 1e-9);
  }
  for (const auto& [time, sample] : record.gpus) {
    const auto gpu = "GPU " + std::to_string(sample.number) + "/";
    if (sample.utilisation != kUnknown) scalar(time, gpu + "utilisation", sample.utilisation);
    if (sample.milliwatts != kUnknown) scalar(time, gpu + "watts", sample.milliwatts * 1e-3);
    scalar(time, gpu + "memory MiB", static_cast<double>(sample.used) / (1 << 20));
  }
}

std::string configuration_of(const RankRecord& record) {
  std::string table = "| option | value |\n|---|---|\n";
  for (const auto& [key, value] : record.configuration)
    table += "| " + key + " | " + value + " |\n";
  return table;
}

}  // namespace

void write_tensorboard(const Run& run, const std::filesystem::path& folder) {
  const double wall = static_cast<double>(run.wall) * 1e-9;
  const auto began = std::to_string(run.wall / 1'000'000'000);
  for (const auto& record : run.ranks) {
    EventFile events(wall);
    events.text(wall, "configuration", configuration_of(record));
    add_steps(record, wall, events);
    for (const auto& [time, gradients] : record.gradients) {
      events.histogram(wall + time, static_cast<int64_t>(gradients.step), "gradients/size",
                       histogram_of(gradients));
    }
    for (const auto& [time, part] : record.evaluations) {
      events.scalar(wall + time, static_cast<int64_t>(part.step), part.split + "/loss",
                    static_cast<float>(part.sum / part.count));
    }
    for (const auto& [time, metric] : record.measured) {
      events.scalar(wall + time, static_cast<int64_t>(metric.step), metric.name,
                    static_cast<float>(metric.value()));
    }
    add_samples(record, wall, events);
    write_file(folder / ("rank-" + std::to_string(record.rank())) /
                   ("events.out.tfevents." + began + "." + record.host()),
               events.bytes());
  }
}

}  // namespace checker::monitor
