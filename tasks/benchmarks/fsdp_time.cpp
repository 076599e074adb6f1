// A training step of a GPT under FullyShardedDataParallel, timed: see --help. peers/fsdp_peer.py is
// the same under PyTorch's fully_shard.
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cxxopts.hpp>
#include <iostream>
#include <set>

#include "distributed_utils/distributed_utils.hpp"
#include "gpt.hpp"
#include "operators/adamw.hpp"
#include "ranks.hpp"
#include "tasks/options.hpp"

namespace {

namespace du = distributed_utils;

struct Settings {
  int ranks = 2;
  int64_t batch = 4, steps = 10, windows = 5, warm_up = 8;
  double rate = 1e-4;
  bool bf16 = true;
  std::string trace;
  gpt::Shape shape;
  du::FullyShardedDataParallelOptions sharding;
};

cxxopts::Options describe() {
  cxxopts::Options options(
      "fsdp_time",
      "Times a training step of a GPT whose layers are units of FullyShardedDataParallel: "
      "--windows times --steps steps. Prints one JSON object: the median of milliseconds a step "
      "with the least and the greatest, tokens a second of all ranks, peak memory of the fullest "
      "rank, and the last step's mean loss.");
  const auto number = [](const char* standard) {
    return cxxopts::value<int64_t>()->default_value(standard);
  };
  options.add_options()("h,help", "this text")("ranks", "processes on this machine", number("2"));
  options.add_options("model")("width", "of the model", number("2048"))(
      "layers", "units", number("16"))("heads", "of attention", number("16"))(
      "inner", "width of the feed-forward layers", number("8192"))(
      "vocabulary", "tokens", number("32768"))("sequence", "tokens of a sample", number("2048"))(
      "batch", "samples a rank", number("4"));
  options.add_options("sharding")("no-reshard", "keep units whole until their backward")(
      "prefetch", "units that are gathered ahead", number("1"))(
      "precision", "bf16: computed in bf16, added up in fp32; or fp32",
      cxxopts::value<std::string>()->default_value("bf16"));
  options.add_options("timing")("steps", "of a window", number("10"))(
      "windows", "timed", number("5"))("warm-up", "steps before them", number("8"))(
      "trace", "instead: write what two steps of rank 0 ran when, for ui.perfetto.dev",
      cxxopts::value<std::string>()->default_value(""));
  return options;
}

Settings take(const cxxopts::ParseResult& parsed) {
  const auto number = [&](const char* name, int64_t least = 1) {
    const auto value = parsed[name].as<int64_t>();
    if (value < least || value > (1 << 24)) {
      throw du::Error(std::string("--") + name + " must be between " + std::to_string(least) +
                      " and 16777216.");
    }
    return value;
  };
  const auto precision = parsed["precision"].as<std::string>();
  if (precision != "bf16" && precision != "fp32") {
    throw du::Error("--precision is bf16 or fp32, not '" + precision + "'.");
  }
  Settings settings{.ranks = static_cast<int>(std::min<int64_t>(number("ranks"), 64)),
                    .batch = number("batch"),
                    .steps = number("steps"),
                    .windows = number("windows"),
                    .warm_up = number("warm-up"),
                    .bf16 = precision == "bf16",
                    .trace = parsed["trace"].as<std::string>(),
                    .shape = {.width = number("width"),
                              .layers = number("layers"),
                              .heads = number("heads"),
                              .inner = number("inner"),
                              .vocabulary = number("vocabulary"),
                              .sequence = number("sequence")}};
  settings.sharding.reshard_after_forward = parsed.count("no-reshard") == 0;
  settings.sharding.forward_prefetch = static_cast<int>(number("prefetch", 0));
  settings.sharding.backward_prefetch = settings.sharding.forward_prefetch;
  if (settings.bf16) settings.sharding.mp_policy = {torch::kBFloat16, torch::kFloat32};
  return settings;
}

/// All that a trainer has, on tokens drawn at random, each rank its own.
class Training {
 public:
  Training(const Settings& settings, const du::World& world) : settings_(settings) {
    torch::manual_seed(0);
    auto module = std::make_shared<gpt::Model>(settings.shape);
    module->to(world.device);
    auto sharding = settings.sharding;
    sharding.units = module->layers();
    model_ = du::FullyShardedDataParallel(module, sharding).ptr();
    optimizer_ = std::make_unique<tasks::operators::FusedAdamW>(
        model_->parameters(), torch::optim::AdamWOptions(settings.rate));
    torch::manual_seed(1 + world.rank);
    for (int i = 0; i < 8; ++i) {
      batches_.push_back(torch::randint(settings.shape.vocabulary,
                                        {settings.batch, settings.shape.sequence + 1}, torch::kLong)
                             .to(world.device));
    }
  }

  torch::Tensor step() {
    const auto& batch = batches_[number_++ % batches_.size()];
    const int64_t sequence = settings_.shape.sequence;
    const auto logits = model_->forward(batch.narrow(1, 0, sequence));
    const auto loss = torch::nn::functional::cross_entropy(logits.to(torch::kFloat32).flatten(0, 1),
                                                           batch.narrow(1, 1, sequence).flatten());
    loss.backward();
    optimizer_->step();
    model_->zero_grad();
    return loss;
  }

 private:
  const Settings& settings_;
  std::shared_ptr<du::FullyShardedDataParallelImpl<gpt::Model>> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<torch::Tensor> batches_;
  size_t number_ = 0;
};

c10::DeviceAllocator* allocator_of(torch::Device device) {
  return device.is_cpu() ? nullptr : c10::getDeviceAllocator(device.type());
}

void measure(Training& training, const Settings& settings, const du::World& world) {
  for (int64_t i = 0; i < settings.warm_up; ++i) training.step();
  ranks::wait_for(world.device);
  du::barrier();
  auto* const allocator = allocator_of(world.device);
  if (allocator) allocator->resetPeakStats(world.device.index());
  std::vector<double> times;
  torch::Tensor loss;
  for (int64_t window = 0; window < settings.windows; ++window) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < settings.steps; ++i) loss = training.step();
    ranks::wait_for(world.device);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    times.push_back(taken.count() / static_cast<double>(settings.steps));
  }
  const double bytes =
      allocator ? static_cast<double>(
                      allocator->getDeviceStats(world.device.index()).allocated_bytes[0].peak)
                : 0;
  const auto on_device = torch::TensorOptions(torch::kFloat64).device(world.device);
  const auto peak = torch::full({1}, bytes / (1 << 30), on_device);
  const auto mean = loss.detach().to(torch::kFloat64) / world.world_size;
  du::all_reduce(peak, du::ReduceOp::MAX);
  du::all_reduce(mean);
  std::ranges::sort(times);
  const double middle = times[times.size() / 2];
  const auto tokens =
      static_cast<double>(world.world_size * settings.batch * settings.shape.sequence);
  du::print0(R"({{"name": "fsdp_time", "ranks": {}, "step_ms": {:.3f}, "least_ms": {:.3f}, )"
             R"("most_ms": {:.3f}, "peak_gib": {:.3f}, "loss": {:.6f}, "tokens_per_s": {:.0f}}})",
             world.world_size, middle, times.front(), times.back(), peak.item<double>(),
             mean.item<double>(), tokens / middle * 1e3);
}

void write_trace(Training& training, const Settings& settings, const du::World& world) {
  namespace profiler = torch::autograd::profiler;
  using torch::profiler::impl::ActivityType;
  for (int64_t i = 0; i < settings.warm_up; ++i) training.step();
  ranks::wait_for(world.device);
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  for (int i = 0; i < 2; ++i) training.step();
  ranks::wait_for(world.device);
  const auto result = profiler::disableProfiler();
  if (world.rank == 0) result->save(settings.trace);
}

}  // namespace

int main(int argc, char** argv) try {
  auto options = describe();
  const auto parsed = options.parse(argc, argv);
  if (parsed.count("help") > 0) {
    std::cout << options.help();
    return 0;
  }
  const auto settings = take(parsed);
  if (settings.ranks > 1) {
    if (const int code = ranks::start(settings.ranks, argv); code >= 0) return code;
  }
  const auto world = du::setup();
  {
    Training training(settings, world);
    if (settings.trace.empty()) {
      measure(training, settings, world);
    } else {
      write_trace(training, settings, world);
    }
  }
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
