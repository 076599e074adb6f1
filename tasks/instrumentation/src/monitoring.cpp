#include "instrumentation/monitoring.hpp"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "call_times.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "gpu_probe.hpp"
#include "log_file.hpp"
#include "probes.hpp"
#include "this_process.hpp"

namespace instrumentation::monitoring {
namespace {

using distributed_utils::Error;

constexpr uint64_t kLargest = 256 << 20;
// What happens step by step is recorded in full up to this length of the log.
constexpr uint64_t kDetails = 16 << 20;
constexpr uint64_t kDetailedSteps = 20, kOfSteps = 1000;

// Ranks share a node, so one of them looks at what belongs to all; a rank that sees one GPU, which
// Slurm gave to it alone, looks at that.
std::unique_ptr<GpuProbe> probe_for(uint32_t local_rank) {
  const auto visible = distributed_utils::process_environment("CUDA_VISIBLE_DEVICES");
  const bool one = visible && !visible->empty() && visible->find(',') == std::string::npos;
  if (local_rank != 0 && !one) return nullptr;
  return std::make_unique<GpuProbe>(visible);
}

class Monitor {
 public:
  Monitor(const std::filesystem::path& path, const Header& header, const StartOptions& options)
      : file_(path, header, kLargest), local_rank_(header.local_rank), interval_(options.interval) {
    append(Kind::configuration, now(), std::as_bytes(std::span(options.configuration)));
    thread_ = std::thread([this] { run(); });
  }

  void append(Kind kind, uint64_t time, std::span<const std::byte> payload) {
    if (full_.load(std::memory_order_relaxed)) return;
    if (!file_.append(kind, time, payload) && !full_.exchange(true)) {
      fmt::print(stderr,
                 "warning: monitoring stops here: the disk or the record of this rank is full\n");
    }
  }

  uint64_t length() const { return file_.length(); }

  // At the process's end: the last samples, and that it ended.
  void finish() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
    sample();
    append(Kind::exit, now(), {});
  }

 private:
  void describe(const GpuProbe::Gpu& gpu) {
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
    if (const auto process = sample_process()) append_sample(Kind::process, *process);
    if (local_rank_ == 0) {
      if (const auto node = sample_node()) append_sample(Kind::node, *node);
    }
    if (probe_) {
      for (const auto& gpu : probe_->sample()) append_sample(Kind::gpu, gpu);
    }
    record_traffic();
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

  LogFile file_;
  uint32_t local_rank_;
  std::chrono::milliseconds interval_;
  std::unique_ptr<GpuProbe> probe_;
  std::atomic<bool> full_ = false;
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
  if (enabled()) throw Error("monitoring::start() was called twice. Fix: call it once.");
  const Header header = describe_process();
  const auto folder = options.folder / fmt::format("{:016x}", header.run);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);  // what fails is said when the file is made
  const auto path = folder / fmt::format("rank-{:05}{}", header.rank, kMonitorExtension);
  monitor.store(new Monitor(path, header, options));
  // NOLINTNEXTLINE(bugprone-unused-return-value): without it a regular exit looks like a kill
  (void)std::atexit([] { monitor.load()->finish(); });
}

bool enabled() { return monitor.load(std::memory_order_acquire) != nullptr; }

uint64_t now() { return read_clock(CLOCK_MONOTONIC); }

void record(Kind kind, std::span<const std::byte> payload, uint64_t time) {
  if (Monitor* into = monitor.load(std::memory_order_acquire)) into->append(kind, time, payload);
}

void record_text(Kind kind, std::string_view text) {
  record(kind, std::as_bytes(std::span(text.data(), text.size())));
}

bool wants_details(uint64_t step) {
  const Monitor* into = monitor.load(std::memory_order_acquire);
  return into != nullptr && (into->length() < kDetails || step % kOfSteps < kDetailedSteps);
}

bool wants_details() { return wants_details(current_step.load(std::memory_order_relaxed)); }

void set_step(uint64_t step) { current_step.store(step, std::memory_order_relaxed); }

}  // namespace instrumentation::monitoring
