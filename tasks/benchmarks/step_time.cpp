// The training step of a task as a trainer takes it, timed; on several ranks under
// DistributedDataParallel. Prints medians with their least and greatest: see --help.
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "distributed_utils/distributed_utils.hpp"
#include "limits.hpp"
#include "many_words.hpp"
#include "ranks.hpp"
#include "step_time_options.hpp"
#include "tasks/step_graph.hpp"
#include "tasks/task.hpp"

namespace {

namespace du = distributed_utils;

/// All that a trainer has, ready to take steps.
class Training {
 public:
  Training(const tasks::Options& options, const step_time::Settings& settings, torch::Device device)
      : device_(device),
        graph_(options),
        task_(tasks::make_task(options)),
        data_(task_->dataset("train")),
        sampler_(*data_.size(), {.shuffle = true, .seed = options.seed, .drop_last = true}),
        loader_(torch::data::make_data_loader(
            data_, sampler_, torch::data::DataLoaderOptions(options.batch_size).drop_last(true))) {
    const auto module = task_->make_model();
    module->to(device);
    model_ = du::DistributedDataParallel(module, {.bucket_cap_bytes = settings.bucket_bytes,
                                                  .gradient_as_bucket_view = settings.bucket_views})
                 .ptr();
    if (settings.compress) model_->register_comm_hook(du::bf16_compress_hook);
    model_->train();
    optimizer_ = task_->make_optimizer(model_->parameters());
  }

  const torch::nn::Module& model() const { return *model_; }

  tasks::Loss step() {
    if (!at_ || *at_ == loader_->end()) {
      sampler_.set_epoch(epoch_++);
      at_.emplace(loader_->begin());
    }
    last_ = **at_;
    ++*at_;
    return take(last_);
  }

  /// On the batch of the last step(), which is on the device already.
  tasks::Loss step_again() {
    if (!last_.input[0].device().is_cuda()) last_ = last_.to(device_);
    return take(last_);
  }

 private:
  tasks::Loss take(const tasks::Batch& batch) {
    return graph_.take(batch, [this](const tasks::Batch& taken) {
      const auto [input, target] = taken.to(device_);
      model_->zero_grad();
      const auto loss = task_->loss(model_->forward(input), target);
      loss.mean().backward();
      optimizer_->step();
      return loss;
    });
  }

  using Loader = decltype(torch::data::make_data_loader(std::declval<tasks::Dataset>(),
                                                        std::declval<du::DistributedSampler>(),
                                                        torch::data::DataLoaderOptions()));
  using Iterator = decltype(std::declval<Loader>()->begin());

  torch::Device device_;
  tasks::StepGraph graph_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset data_;
  du::DistributedSampler sampler_;
  Loader loader_;
  std::optional<Iterator> at_;
  uint64_t epoch_ = 0;
  tasks::Batch last_;
  std::shared_ptr<du::DistributedDataParallelImpl<tasks::Model>> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

double milliseconds_of(int64_t steps, torch::Device device, const auto& step) {
  ranks::wait_for(device);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps; ++i) step();
  ranks::wait_for(device);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / static_cast<double>(steps);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Of as many bytes as all gradients have, alone; the median of nine.
double all_reduce_ms(const torch::nn::Module& model, torch::Device device) {
  int64_t elements = 0;
  for (const auto& parameter : model.parameters()) elements += parameter.numel();
  const auto gradients = torch::zeros({elements}, device);
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    times.push_back(milliseconds_of(5, device, [&] { du::all_reduce(gradients); }));
  }
  times.erase(times.begin());  // connects
  return median(std::move(times));
}

void measure(benchmark::State& state, Training& training, const step_time::Settings& settings,
             const tasks::Options& options, const du::World& world) {
  for (int i = 0; i < 30; ++i) training.step();
  const int64_t targets = training.step().count;
  const auto tokens = static_cast<double>(targets * world.world_size);
  std::vector<double> loaded, again;
  for (auto _ : state) {
    loaded.push_back(milliseconds_of(settings.steps, world.device, [&] { training.step(); }));
    again.push_back(milliseconds_of(settings.steps, world.device, [&] { training.step_again(); }));
    state.SetIterationTime(loaded.back() * 1e-3);
  }
  const double middle = median(loaded);
  state.counters["step_ms"] = middle;
  state.counters["least_ms"] = *std::min_element(loaded.begin(), loaded.end());
  state.counters["most_ms"] = *std::max_element(loaded.begin(), loaded.end());
  state.counters["tokens_per_s"] = tokens / middle * 1e3;
  state.counters["limit_ms"] = limits::step_ms(training.model(), targets, options, world.device);
  if (world.world_size > 1) {
    state.counters["all_reduce_ms"] = all_reduce_ms(training.model(), world.device);
  }
  state.counters["loader_percent"] = 100 * (middle - median(again)) / middle;
}

void write_losses(Training& training, const step_time::Settings& settings, int rank) {
  std::vector<torch::Tensor> losses;
  for (int64_t i = 0; i < settings.steps; ++i) {
    losses.push_back(training.step().mean().detach().clone());
  }
  if (rank != 0) return;
  std::ofstream file(*settings.losses);
  for (const auto& loss : losses) file << fmt::format("{:.9g}\n", loss.item<double>());
  if (!file) throw tasks::Error(fmt::format("--losses: cannot write {}", *settings.losses));
}

// What five steps run on host and GPU, and when, as Chrome's tracing format has it.
void write_trace(Training& training, const std::string& file, torch::Device device) {
  namespace profiler = torch::autograd::profiler;
  using torch::profiler::impl::ActivityType;
  for (int i = 0; i < 30; ++i) training.step();
  ranks::wait_for(device);
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  for (int i = 0; i < 5; ++i) training.step();
  ranks::wait_for(device);
  profiler::disableProfiler()->save(file);
}

void run(int argc, char** argv, const step_time::Settings& settings,
         const std::filesystem::path& folder) {
  auto options = tasks::parse_options(argc, argv);
  options.output = folder / "output";
  if (!options.data && options.task == "language_model") {
    options.data = folder / "text";
    many_words::write(*options.data, settings.vocabulary);
  }
  tasks::apply(options);
  const auto world = du::setup({.backend = options.backend, .device = options.device});
  Training training(options, settings, world.device);
  if (settings.losses) {
    write_losses(training, settings, world.rank);
  } else if (settings.trace) {
    write_trace(training, *settings.trace + (world.rank > 0 ? fmt::format(".{}", world.rank) : ""),
                world.device);
  } else {
    std::string name = "step";
    for (int i = 1; i < argc; ++i) name += fmt::format(" {}", argv[i]);
    benchmark::RegisterBenchmark(
        name.c_str(),
        [&](benchmark::State& state) { measure(state, training, settings, options, world); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(settings.repeats);
    ranks::run_benchmarks(world.rank);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<char*> arguments(argv, argv + argc + 1);  // ranks get them all
  const auto settings = step_time::take_settings(argc, argv);
  if (settings.text) {
    many_words::write(*settings.text, settings.vocabulary);
    return 0;
  }
  if (settings.ranks > 1) {
    if (const int code = ranks::start(settings.ranks, arguments.data(), settings.nodes); code >= 0)
      return code;
  }
  benchmark::Initialize(&argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "step-time-XXXXXX").string();
  if (!mkdtemp(folder.data())) throw tasks::Error("no temporary folder can be made");
  run(argc, argv, settings, folder);
  std::filesystem::remove_all(folder);
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
