#pragma once
/// Runs made up for tests, with nothing wrong until a test spoils them.
#include <algorithm>

#include "monitor/run.hpp"

namespace checker::testing {

struct Shape {
  size_t ranks = 2, steps = 200;
  double step = 0.1;           ///< seconds
  bool gpus = false;           ///< one for each rank, all on one node
  size_t detailed = SIZE_MAX;  ///< steps with spans and collectives
};

/// A step is 5 % data, 30 % forward, 55 % backward and 10 % optimizer, with one all-reduce of
/// 1 MiB in its backward pass, to which ranks come within 0.1 ms.
inline monitor::Run healthy_run(const Shape& shape = {}) {
  using namespace monitor;  // NOLINT(google-build-using-namespace)
  constexpr double parts[] = {0.05, 0.3, 0.55, 0.1};
  Run run;
  run.world_size = shape.ranks;
  for (size_t rank = 0; rank < shape.ranks; ++rank) {
    RankRecord record;
    record.header.rank = record.header.local_rank = static_cast<uint32_t>(rank);
    record.header.world_size = static_cast<uint32_t>(shape.ranks);
    std::copy_n("node1", 6, record.header.host);
    record.device = shape.gpus ? "cuda:" + std::to_string(rank) : "cpu";
    record.groups[0] = {"world", static_cast<uint32_t>(rank), static_cast<uint32_t>(shape.ranks)};
    const double start = 1;
    record.steps.reserve(shape.steps);
    for (size_t i = 0; i < shape.steps; ++i) {
      const double begin = start + shape.step * static_cast<double>(i);
      Step step;
      step.number = static_cast<uint32_t>(i + 1);
      step.begin = begin;
      step.end = begin + shape.step;
      step.targets = 1000;
      step.loss = 6 - 3 * static_cast<double>(i) / static_cast<double>(shape.steps);
      step.learning_rate = 0.001F;
      for (size_t p = 0; p < 4; ++p) step.phases[p] = static_cast<float>(parts[p] * shape.step);
      step.collectives = static_cast<float>(0.05 * shape.step);
      record.steps.push_back(step);
      if (i >= shape.detailed) continue;
      double at = begin;
      for (size_t p = 0; p < 4; ++p) {
        record.spans.push_back({at, at + parts[p] * shape.step, i + 1, static_cast<Phase>(p)});
        at += parts[p] * shape.step;
      }
      if (shape.ranks > 1) {
        const double from = begin + 0.8 * shape.step + 0.0001 * static_cast<double>((rank + i) % 2);
        record.collectives.push_back({from, begin + 0.85 * shape.step, i, 1 << 20, 0, 1, false});
      }
    }
    const double end = start + shape.step * static_cast<double>(shape.steps);
    if (shape.ranks > 1) {
      record.traffic[1] = {1, shape.steps, shape.steps << 20,
                           static_cast<uint64_t>(5e7 * shape.step) * shape.steps};
    }
    for (double time = 0; time <= end; time += std::max(0.5, end / 2000)) {
      record.process.push_back(
          {time, {static_cast<uint64_t>(time * 1e9), 500 << 20, 600 << 20, 0, 0}});
      if (rank == 0) {
        record.node.push_back({time,
                               {static_cast<uint64_t>(time * 150),
                                static_cast<uint64_t>(time * 400), 16ULL << 30, 8ULL << 30, 4}});
      }
      for (size_t gpu = 0; shape.gpus && rank == 0 && gpu < shape.ranks; ++gpu) {
        record.gpus.push_back({time,
                               {.used = 40ULL << 30,
                                .total = 80ULL << 30,
                                .number = static_cast<uint32_t>(gpu),
                                .utilisation = 90,
                                .milliwatts = 500'000,
                                .sm_clock = 1900,
                                .memory_clock = 3000,
                                .celsius = 50}});
      }
    }
    for (size_t gpu = 0; shape.gpus && rank == 0 && gpu < shape.ranks; ++gpu) {
      record.gpu_names[static_cast<uint32_t>(gpu)] = "GPU-" + std::to_string(gpu) + " NVIDIA H200";
    }
    record.memory = MemoryRecord{4 << 20, 4 << 20, 8 << 20, 32 << 20};
    record.last = end;
    record.ended = true;
    run.ranks.push_back(std::move(record));
  }
  return run;
}

}  // namespace checker::testing
