// Batches as a trainer's loader fetches them, without any training: samples a second of one rank.
// Takes a trainer's options, for example
//   loading_benchmark --task images --config gpu --threads 2
#include <benchmark/benchmark.h>

#include "tasks/keyed_random.hpp"
#include "tasks/task.hpp"

namespace {

/// Random samples, as in training.
std::vector<size_t> draw(size_t count, size_t size, uint64_t batch) {
  tasks::KeyedRandom random(0, 0, batch);
  std::vector<size_t> indices(count);
  for (auto& index : indices) {
    index = static_cast<size_t>(random.below(static_cast<int64_t>(size)));
  }
  return indices;
}

void fetch(benchmark::State& state, tasks::Dataset data, size_t batch_size) {
  uint64_t batch = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(data.get_batch(draw(batch_size, *data.size(), batch++)));
  }
  state.counters["samples_per_s"] =
      benchmark::Counter(static_cast<double>(batch * batch_size), benchmark::Counter::kIsRate);
}

void run(int argc, char** argv) {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto data = tasks::make_task(options)->dataset("train");
  const auto batch_size = static_cast<size_t>(options.batch_size);
  benchmark::RegisterBenchmark("fetch",
                               [&](benchmark::State& state) { fetch(state, data, batch_size); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  run(argc, argv);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
