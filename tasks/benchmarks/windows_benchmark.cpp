// Fetching batches of windows from a text of two million words, against copying as many bytes.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "language_model/windows.hpp"

namespace {

constexpr int64_t kWords = 2'000'000;
constexpr int64_t kSequence = 32;

void fetch(benchmark::State& state) {
  const int64_t batch = state.range(0);
  const tasks::language_model::Windows windows(torch::arange(kWords, torch::kInt), kSequence, 1);
  torch::manual_seed(1);
  const auto order = torch::randperm(static_cast<int64_t>(windows.size()));
  const auto* indices = order.const_data_ptr<int64_t>();
  int64_t at = 0;
  std::vector<size_t> request(static_cast<size_t>(batch));
  for (auto _ : state) {
    for (auto& index : request) index = static_cast<size_t>(indices[at++ % order.numel()]);
    benchmark::DoNotOptimize(windows.fetch(request).input[0].data_ptr());
  }
  state.SetItemsProcessed(state.iterations() * batch * kSequence);
}

void copy(benchmark::State& state) {
  const auto from = torch::zeros({2, state.range(0), kSequence}, torch::kLong);
  for (auto _ : state) benchmark::DoNotOptimize(from.clone().data_ptr());
  state.SetItemsProcessed(state.iterations() * state.range(0) * kSequence);
}

void repeated(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("batch")->Arg(32)->Arg(128)->Unit(benchmark::kMicrosecond)->Repetitions(9);
  benchmark->ReportAggregatesOnly();
}

BENCHMARK(fetch)->Apply(repeated);
BENCHMARK(copy)->Apply(repeated);

}  // namespace

BENCHMARK_MAIN();
