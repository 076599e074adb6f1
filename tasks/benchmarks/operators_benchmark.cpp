// Operators of our own against torch's, and against what the GPU could do at best: percent_of_limit
// is the time that their least bytes take at the speed of a large copy, or their products at that
// of a large product, whichever is longer, in percent of the time they took. Needs a GPU.
#include <benchmark/benchmark.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "limits.hpp"
#include "operators/adamw.hpp"
#include "operators/attention.hpp"
#include "operators/embedding.hpp"
#include "operators/linear_cross_entropy.hpp"
#include "operators/relu_dropout.hpp"

namespace {

namespace ops = tasks::operators;

// The configuration `seed`, with the seed's vocabulary.
constexpr int64_t kRows = 4096;
constexpr int64_t kWidth = 128;
constexpr int64_t kVocabulary = 66'000;
constexpr int kRepeats = 9;

/// Milliseconds of one call, on the GPU: the mean of twenty.
double milliseconds(const std::function<void()>& work) {
  constexpr int kCalls = 20;
  cudaEvent_t begin{}, end{};
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  const auto stream = c10::cuda::getCurrentCUDAStream();
  cudaEventRecord(begin, stream);
  for (int i = 0; i < kCalls; ++i) work();
  cudaEventRecord(end, stream);
  cudaEventSynchronize(end);
  float taken = 0;
  cudaEventElapsedTime(&taken, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return taken / kCalls;
}

torch::TensorOptions on_gpu(torch::Dtype type = torch::kFloat) {
  return torch::dtype(type).device(torch::kCUDA);
}

double bytes_per_ms() {
  static const double speed = limits::bytes_per_ms(torch::kCUDA);
  return speed;
}

/// fp32: in TF32.
double flops_per_ms(torch::Dtype type) {
  static std::map<torch::Dtype, double> speeds;
  auto& speed = speeds[type];
  if (speed == 0) speed = limits::flops_per_ms(torch::kCUDA, type);
  return speed;
}

void report(benchmark::State& state, double bytes, double flops, torch::Dtype type,
            const std::function<void()>& work) {
  milliseconds(work);
  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(milliseconds(work));
    state.SetIterationTime(times.back() * 1e-3);
  }
  std::sort(times.begin(), times.end());
  const double limit = std::max(bytes / bytes_per_ms(), flops > 0 ? flops / flops_per_ms(type) : 0);
  state.counters["ms"] = times[times.size() / 2];
  state.counters["least_ms"] = times.front();
  state.counters["most_ms"] = times.back();
  state.counters["limit_ms"] = limit;
  state.counters["percent_of_limit"] = 100 * limit / times[times.size() / 2];
}

struct Classifier {
  torch::Tensor hidden = torch::randn({kRows, kWidth}, on_gpu()).requires_grad_();
  torch::Tensor weight = (torch::randn({kVocabulary, kWidth}, on_gpu()) * 0.1).requires_grad_();
  torch::Tensor bias = torch::zeros({kVocabulary}, on_gpu()).requires_grad_();
  torch::Tensor target = torch::randint(kVocabulary, {kRows}, on_gpu(torch::kLong));

  void clear() {
    for (auto* leaf : {&hidden, &weight, &bias}) leaf->mutable_grad().reset();
  }
};

double logits_bytes(torch::Dtype type, bool kept) {
  return limits::logits_bytes(kRows, kVocabulary, type, kept);
}
constexpr double kProducts = 3 * 2.0 * double(kRows) * kVocabulary * kWidth;

void linear_cross_entropy(benchmark::State& state, torch::Dtype type) {
  Classifier c;
  const int64_t chunk = state.range(0);
  ops::NarrowCopies copies(type);
  report(state, logits_bytes(type, type != torch::kBFloat16 || chunk != 0), kProducts, type, [&] {
    c.clear();
    const auto sum = ops::linear_cross_entropy(
        c.hidden, c.weight, c.bias, c.target,
        {.copies = type == torch::kFloat ? nullptr : &copies, .chunk_rows = chunk});
    (sum / kRows).backward();
  });
}

void torch_cross_entropy(benchmark::State& state, torch::Dtype type) {
  Classifier c;
  report(state, logits_bytes(type, true), kProducts, type, [&] {
    c.clear();
    const auto logits = at::linear(c.hidden.to(type), c.weight.to(type), c.bias.to(type));
    at::cross_entropy_loss(logits.to(torch::kFloat), c.target).backward();
  });
}

template <class Optimizer, class... Arguments>
void adamw(benchmark::State& state, double bytes, Arguments... arguments) {
  std::vector<torch::Tensor> parameters;
  for (const auto size :
       {kVocabulary * kWidth, kVocabulary * kWidth, kVocabulary, int64_t{1200000}}) {
    parameters.push_back(torch::randn({size}, on_gpu()).requires_grad_());
    parameters.back().mutable_grad() = torch::randn({size}, on_gpu());
  }
  int64_t elements = 0;
  for (const auto& parameter : parameters) elements += parameter.numel();
  Optimizer optimizer(parameters, torch::optim::AdamWOptions(), arguments...);
  report(state, bytes * double(elements), 0, torch::kFloat, [&] { optimizer.step(); });
}

void embedding_gradient(benchmark::State& state, bool ours) {
  const auto weight = torch::randn({kVocabulary, kWidth}, on_gpu()).requires_grad_();
  const auto indices = torch::randint(kVocabulary, {kRows}, on_gpu(torch::kLong));
  const auto gradient = torch::randn({kRows, kWidth}, on_gpu());
  const double bytes = 4.0 * (kVocabulary + 2 * kRows) * kWidth;
  report(state, bytes, 0, torch::kFloat, [&] {
    weight.mutable_grad().reset();
    (ours ? ops::embedding(weight, indices) : at::embedding(weight, indices)).backward(gradient);
  });
}

// Forward: projections read, the result written; backward: both read, the projections' written.
void attention(benchmark::State& state, torch::Dtype type, bool ours) {
  constexpr int64_t kSequence = 32, kHeads = 4;
  const auto projected =
      torch::randn({kRows / kSequence, kSequence, 3 * kWidth}, on_gpu(type)).requires_grad_();
  const auto gradient = torch::randn({kRows / kSequence, kSequence, kWidth}, on_gpu(type));
  report(state, double(3 * projected.nbytes() + 2 * gradient.nbytes()), 0, type, [&] {
    projected.mutable_grad().reset();
    (ours ? ops::fused_causal_attention : ops::causal_attention)(projected, kHeads, 0.1)
        .backward(gradient);
  });
}

// Forward: read and written; backward: the result and its gradient read, the input's written.
void relu_dropout(benchmark::State& state, bool ours) {
  const auto input = torch::randn({kRows, 16 * kWidth}, on_gpu(torch::kBFloat16)).requires_grad_();
  const auto gradient = torch::randn({kRows, 16 * kWidth}, on_gpu(torch::kBFloat16));
  report(state, 5.0 * double(input.nbytes()), 0, torch::kFloat, [&] {
    input.mutable_grad().reset();
    (ours ? ops::relu_dropout(input, 0.2) : at::dropout(at::relu(input), 0.2, /*train=*/true))
        .backward(gradient);
  });
}

void settings(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(kRepeats);
}
void chunks(benchmark::internal::Benchmark* benchmark) {
  settings(benchmark);
  benchmark->ArgName("chunk_rows");
  for (const int64_t rows : {0, 128, 256, 384, 512, 1024, 4096}) benchmark->Arg(rows);
}

BENCHMARK_CAPTURE(torch_cross_entropy, bf16, torch::kBFloat16)->Apply(settings);
BENCHMARK_CAPTURE(linear_cross_entropy, bf16, torch::kBFloat16)->Apply(chunks);
BENCHMARK_CAPTURE(torch_cross_entropy, tf32, torch::kFloat)->Apply(settings);
BENCHMARK_CAPTURE(linear_cross_entropy, tf32, torch::kFloat)->Apply(chunks);
BENCHMARK_CAPTURE(linear_cross_entropy, fp16, torch::kHalf)->Apply(chunks);
void torch_adamw(benchmark::State& state) { adamw<ops::FusedAdamW>(state, 28); }
void our_adamw(benchmark::State& state) { adamw<ops::FastAdamW>(state, 28, nullptr); }
BENCHMARK(torch_adamw)->Apply(settings);
BENCHMARK(our_adamw)->Apply(settings);
BENCHMARK_CAPTURE(embedding_gradient, torch, false)->Apply(settings);
BENCHMARK_CAPTURE(embedding_gradient, ours, true)->Apply(settings);
BENCHMARK_CAPTURE(attention, torch_bf16, torch::kBFloat16, false)->Apply(settings);
BENCHMARK_CAPTURE(attention, ours_bf16, torch::kBFloat16, true)->Apply(settings);
BENCHMARK_CAPTURE(attention, torch_fp32, torch::kFloat, false)->Apply(settings);
BENCHMARK_CAPTURE(attention, ours_fp32, torch::kFloat, true)->Apply(settings);
BENCHMARK_CAPTURE(relu_dropout, torch, false)->Apply(settings);
BENCHMARK_CAPTURE(relu_dropout, ours, true)->Apply(settings);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (!torch::cuda::is_available()) {
    std::puts("skipped: no GPU here that LibTorch can use");
    return 0;
  }
  at::globalContext().setAllowTF32CuBLAS(true);
  std::printf("copy: %.2f TB/s; products: bf16 %.0f, tf32 %.0f TFLOP/s\n", bytes_per_ms() * 1e-9,
              flops_per_ms(torch::kBFloat16) * 1e-9, flops_per_ms(torch::kFloat) * 1e-9);
  benchmark::RunSpecifiedBenchmarks();
}
