// One epoch's indices of DistributedSampler against the randperm inside it.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "distributed_utils/sampler.hpp"

namespace {

constexpr size_t kSamples = 1'000'000;

void randperm(benchmark::State& state) {
  auto generator = at::detail::createCPUGenerator(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(torch::randperm(kSamples, generator, torch::kLong).data_ptr());
  }
}

void reset_and_drain(benchmark::State& state) {
  const int replicas = static_cast<int>(state.range(0));
  distributed_utils::DistributedSampler sampler(kSamples, {.num_replicas = replicas, .rank = 0});
  uint64_t epoch = 0;
  for (auto _ : state) {
    sampler.set_epoch(++epoch);
    sampler.reset();
    while (auto batch = sampler.next(32)) benchmark::DoNotOptimize(batch->data());
  }
}

void repeated(benchmark::internal::Benchmark* benchmark) {
  benchmark->Unit(benchmark::kMillisecond)
      ->Repetitions(9)
      ->ReportAggregatesOnly()
      ->ComputeStatistics("min",
                          [](const std::vector<double>& times) {
                            return *std::min_element(times.begin(), times.end());
                          })
      ->ComputeStatistics("max", [](const std::vector<double>& times) {
        return *std::max_element(times.begin(), times.end());
      });
}

BENCHMARK(randperm)->Apply(repeated);
BENCHMARK(reset_and_drain)->ArgName("replicas")->Arg(1)->Arg(8)->Apply(repeated);

}  // namespace

BENCHMARK_MAIN();
