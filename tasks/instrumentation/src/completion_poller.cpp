#include "completion_poller.hpp"

#include <c10/util/env.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <thread>

#include "calls.hpp"

namespace instrumentation {
namespace {

using namespace std::chrono_literals;

class Poller {
 public:
  Poller() : thread_([this] { poll(); }) {}

  void add(c10::intrusive_ptr<c10d::Work> work, CallId call) {
    const std::lock_guard lock(mutex_);
    pending_.push_back({std::move(work), call});
    changed_.notify_one();
  }

  // Before the libraries beneath are taken down.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  struct Pending {
    c10::intrusive_ptr<c10d::Work> work;
    CallId call;
  };

  // Of an ended work that NCCL's backend was told to time (not by us: it costs some of the overlap
  // with other kernels); else 0.
  static uint64_t nanoseconds_of(c10d::Work& work) {
    static const bool timed = c10::utils::check_env("TORCH_NCCL_ENABLE_TIMING").value_or(false);
    if (!timed) return 0;
    try {
      return static_cast<uint64_t>(work.getDuration() * 1e6F);
    } catch (const std::exception&) {
      return 0;
    }
  }

  // True once the work has ended. An aborted one may throw when it is asked.
  static bool ended(const Pending& pending) {
    try {
      if (!pending.work->isCompleted()) return false;
      const bool failed = pending.work->exception() != nullptr;
      record_completed(pending.call, failed, failed ? 0 : nanoseconds_of(*pending.work));
    } catch (const std::exception&) {
      record_completed(pending.call, true);
    }
    return true;
  }

  void poll() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      changed_.wait(lock, [&] { return stopping_ || !pending_.empty(); });
      std::list<Pending> now;
      now.swap(pending_);
      lock.unlock();  // asking may take CUDA's own locks
      now.remove_if(ended);
      lock.lock();
      pending_.splice(pending_.begin(), now);
      changed_.wait_for(lock, 2ms, [&] { return stopping_; });
    }
    pending_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Pending> pending_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace

void record_end_by_polling(c10::intrusive_ptr<c10d::Work> work, CallId call) {
  static auto* const poller = [] {
    auto* made = new Poller;  // leaked: works may come until the very end
    static Poller* to_stop = nullptr;
    to_stop = made;
    // NOLINTNEXTLINE(bugprone-unused-return-value): without it the thread dies with the process
    (void)std::atexit([] { to_stop->stop(); });
    return made;
  }();
  poller->add(std::move(work), call);
}

}  // namespace instrumentation
