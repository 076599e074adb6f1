#include "distributed_utils/monitoring.hpp"

#include <fmt/format.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime is POSIX's
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "gpu_probe.hpp"
#include "monitor_file.hpp"
#include "monitor_probes.hpp"
#include "monitored_calls.hpp"

namespace distributed_utils::monitoring {
namespace {

// What happens step by step is recorded in full up to this size of the file.
constexpr uint64_t kDetails = 16 << 20;
constexpr uint64_t kDetailedSteps = 20, kOfSteps = 1000;

uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

Launch launch_or_alone() {
  try {
    return read_launch();
  } catch (const Error&) {  // setup(), if the program calls it, says so
    return {};
  }
}

// The same for all ranks of one run, as far as launchers tell; one process alone is a run.
uint64_t name_run(const Header& header) {
  std::string known;
  for (const char* variable : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
                               "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "INIT_METHOD",
                               "MASTER_ADDR", "MASTER_PORT", "PMIX_NAMESPACE"}) {
    if (const auto value = process_environment(variable)) {
      known += fmt::format("{}={};", variable, *value);
    }
  }
  if (known.empty()) known = fmt::format("{} {} {}", header.host, header.process, header.wall);
  const auto bytes = std::as_bytes(std::span(known));
  return uint64_t{checksum(bytes)} << 32 | checksum(bytes, /*from=*/84696351U);
}

Header describe_process() {
  const Launch launch = launch_or_alone();
  Header header{};
  header.magic = kMagic;
  header.wall = static_cast<int64_t>(read_clock(CLOCK_REALTIME));
  header.nanoseconds = now();
  header.rank = static_cast<uint32_t>(launch.rank);
  header.local_rank = static_cast<uint32_t>(launch.local_rank);
  header.world_size = static_cast<uint32_t>(launch.world_size);
  header.process = static_cast<uint32_t>(getpid());
  gethostname(header.host, sizeof header.host - 1);
  if (const auto node = process_environment("SLURMD_NODENAME")) {  // as Slurm's users know it
    header.host[node->copy(header.host, sizeof header.host - 1)] = 0;
  }
  header.run = name_run(header);
  return header;
}

// Ranks share a node, so one of them looks at what belongs to all; a rank that sees one GPU, which
// Slurm gave to it alone, looks at that.
std::unique_ptr<detail::GpuProbe> probe_for(uint32_t local_rank) {
  const auto visible = process_environment("CUDA_VISIBLE_DEVICES");
  const bool one = visible && !visible->empty() && visible->find(',') == std::string::npos;
  if (local_rank != 0 && !one) return nullptr;
  return std::make_unique<detail::GpuProbe>(visible);
}

class Monitor {
 public:
  Monitor(const std::filesystem::path& path, const Header& header, const StartOptions& options)
      : file_(path, header), local_rank_(header.local_rank), interval_(options.interval) {
    append(Kind::configuration, now(), std::as_bytes(std::span(options.configuration)));
    thread_ = std::thread([this] { run(); });
  }

  void append(Kind kind, uint64_t time, std::span<const std::byte> payload) {
    if (!file_.append(kind, time, payload) && !told_.exchange(true)) {
      fmt::print(stderr,
                 "warning: monitoring ends here: the disk or the record of this rank is full\n");
    }
  }

  uint64_t size() const { return file_.size(); }

  // At the process's end: the last samples, and that it came to its end.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
    sample();
    append(Kind::end, now(), {});
  }

 private:
  void describe(const detail::GpuProbe::Gpu& gpu) {
    const uint64_t number = gpu.number;
    std::string payload(reinterpret_cast<const char*>(&number), sizeof number);
    payload += gpu.name;
    append(Kind::gpu_name, now(), std::as_bytes(std::span(payload)));
  }

  template <class Sample>
  void append_sample(Kind kind, const Sample& sample) {
    append(kind, now(), std::as_bytes(std::span(&sample, 1)));
  }

  void sample() {
    if (const auto process = detail::sample_process()) append_sample(Kind::process, *process);
    if (local_rank_ == 0) {
      if (const auto node = detail::sample_node()) append_sample(Kind::node, *node);
    }
    if (probe_) {
      for (const auto& gpu : probe_->sample()) append_sample(Kind::gpu, gpu);
    }
    detail::record_traffic();
  }

  void run() {
    probe_ = probe_for(local_rank_);  // here, because NVML takes its time to begin
    if (probe_) {
      for (const auto& gpu : probe_->gpus()) describe(gpu);
    }
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      sample();
      lock.lock();
      changed_.wait_for(lock, interval_, [&] { return stopping_; });
    }
  }

  detail::MonitorFile file_;
  uint32_t local_rank_;
  std::chrono::milliseconds interval_;
  std::unique_ptr<detail::GpuProbe> probe_;
  std::atomic<bool> told_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

// Null until start(). Leaked: threads record until the very end.
std::atomic<Monitor*> monitor = nullptr;
std::atomic<uint64_t> current_step = 1;

}  // namespace

void start(const StartOptions& options) {
  if (enabled()) throw Error("monitoring::start() was called twice. Mend: call it once.");
  const Header header = describe_process();
  const auto folder = options.folder / fmt::format("{:016x}", header.run);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);  // what fails is said when the file is made
  const auto path = folder / fmt::format("rank-{:05}{}", header.rank, kExtension);
  monitor.store(new Monitor(path, header, options));
  // NOLINTNEXTLINE(bugprone-unused-return-value): without it a regular exit looks like a kill
  (void)std::atexit([] { monitor.load()->finish(); });
}

bool enabled() { return monitor.load(std::memory_order_acquire) != nullptr; }

uint64_t now() { return read_clock(CLOCK_MONOTONIC); }

void record(Kind kind, std::span<const std::byte> payload, uint64_t time) {
  Monitor* into = monitor.load(std::memory_order_acquire);
  if (into == nullptr) return;
  if (kind == Kind::collective && !wants_details(current_step.load(std::memory_order_relaxed))) {
    return;
  }
  into->append(kind, time, payload);
}

void record_text(Kind kind, std::string_view text) {
  record(kind, std::as_bytes(std::span(text.data(), text.size())));
}

bool wants_details(uint64_t step) {
  const Monitor* into = monitor.load(std::memory_order_acquire);
  return into != nullptr && (into->size() < kDetails || step % kOfSteps < kDetailedSteps);
}

void set_step(uint64_t step) { current_step.store(step, std::memory_order_relaxed); }

}  // namespace distributed_utils::monitoring
