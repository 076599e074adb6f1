// What --monitor costs: a training step of the laptop configuration in a process that is monitored
// against one in a process that is not, in turn (extra_us), by the clock and by the CPU time of all
// threads, which other programs disturb less; one look at the machine, which happens twice a
// second; and one record, and a step writes about ten. Goal: less than 1 % of a step.
#include "pairs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <utility>

#include "instrumentation/monitoring.hpp"
#include "probes.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace {

class Trainer {
 public:
  explicit Trainer(bool monitored)
      : options_(options(monitored)),
        task_(tasks::make_task(options_)),
        data_(task_->dataset("train")),
        model_(task_->make_model()),
        optimizer_(task_->make_optimizer(model_->parameters())),
        progress_(options_, *data_.size()) {}

  void step() {
    std::vector<size_t> indices(static_cast<size_t>(options_.batch_size));
    for (auto& index : indices) index = next_++ % *data_.size();
    const auto [input, target] = data_.get_batch(indices).to(torch::kCPU);
    optimizer_->zero_grad();
    const auto loss = task_->loss(model_->forward(input), target);
    loss.mean().backward();
    optimizer_->step();
    progress_.step(loss);
  }

 private:
  static tasks::Options options(bool monitored) {
    std::vector<const char*> arguments{"train", "--threads", "1",   "--output",
                                       folder,  "--device",  "cpu", "--monitor"};
    if (!monitored) arguments.pop_back();
    auto all = tasks::parse_options(static_cast<int>(arguments.size()),
                                    const_cast<char**>(arguments.data()));
    tasks::apply(all);
    return all;
  }

 public:
  inline static char folder[] = "/tmp/monitoring_benchmark-XXXXXX";

 private:
  tasks::Options options_;
  std::shared_ptr<tasks::Task> task_;
  tasks::Dataset data_;
  std::shared_ptr<tasks::Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  tasks::Progress progress_;
  size_t next_ = 0;
};

// A process of its own that does a step whenever it is told to.
class Peer {
 public:
  explicit Peer(bool monitored) {
    if (pipe(to_) != 0 || pipe(from_) != 0) std::abort();
    process_ = fork();
    if (process_ == 0) {
      close(to_[1]);
      Trainer trainer(monitored);
      double used = cpu_time();
      for (char byte = 0; read(to_[0], &byte, 1) == 1;) {
        trainer.step();
        const double before = std::exchange(used, cpu_time());
        const double step = used - before;  // and, of the monitor, what came since the last step
        if (write(from_[1], &step, sizeof step) != sizeof step) break;
      }
      std::_Exit(0);
    }
    close(to_[0]);
  }
  ~Peer() {
    close(to_[1]);
    waitpid(process_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// The microseconds of CPU time that it took.
  double step() const {
    const char byte = 0;
    double used = 0;
    if (write(to_[1], &byte, 1) != 1 || read(from_[0], &used, sizeof used) != sizeof used) {
      std::abort();
    }
    return used;
  }

 private:
  static double cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  }

  int to_[2]{}, from_[2]{};
  pid_t process_ = -1;
};

void step(benchmark::State& state, const Peer& plain, const Peer& monitored, bool by_clock) {
  if (by_clock) {
    pairs::compare(
        state, [&] { plain.step(); }, [&] { monitored.step(); });
  } else {
    pairs::compare(
        state, [&] { return plain.step(); }, [&] { return monitored.step(); });
  }
  state.counters["extra_percent"] =
      100 * state.counters["extra_us"].value / state.counters["bare_us"].value;
}

void sample(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(instrumentation::sample_process());
    benchmark::DoNotOptimize(instrumentation::sample_node());
  }
}

void record(benchmark::State& state) {
  if (!instrumentation::monitoring::enabled())
    instrumentation::monitoring::start(
        {.folder = Trainer::folder, .interval = std::chrono::hours(1)});
  const instrumentation::StepRecord step{};
  for (auto _ : state) {
    instrumentation::monitoring::record_one(instrumentation::Kind::step, step);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (mkdtemp(Trainer::folder) == nullptr) return 1;
  const Peer plain(false), monitored(true);
  for (const bool by_clock : {true, false}) {
    benchmark::RegisterBenchmark(
        by_clock ? "laptop_step" : "laptop_step_cpu",
        [&, by_clock](benchmark::State& state) { step(state, plain, monitored, by_clock); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(200);
  }
  benchmark::RegisterBenchmark("sample", sample)->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("record", record)
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(100'000);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(Trainer::folder);
}
