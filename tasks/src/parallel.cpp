#include "tasks/parallel.hpp"

#include <ATen/Parallel.h>
#include <c10/core/thread_pool.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>

namespace tasks {
namespace {

// at::set_num_threads would set it for threads that are made later as well.
void use_one_thread_here() {
  // Torch sets its own number when a thread asks first. That fails in a process that was forked
  // from one with threads, where there is nothing to be replaced.
  try {
    at::get_num_threads();
  } catch (const c10::Error&) {
  }
  using Set = void (*)(int);
  if (const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(1);
}

// Threads do not follow into a process that forks, and the pool is as large as torch's number of
// threads was when somebody asked first. What is replaced is left as it is: its threads may be
// another process's.
c10::ThreadPool& pool_of(int threads) {
  struct Pool {
    c10::ThreadPool* threads = nullptr;
    pid_t process = 0;
  };
  static std::mutex mutex;
  static Pool pool;
  const std::lock_guard lock(mutex);
  if (!pool.threads || pool.process != getpid() ||
      pool.threads->size() != static_cast<size_t>(threads)) {
    pool = {new c10::ThreadPool(threads, /*numa_node_id=*/-1, use_one_thread_here), getpid()};
  }
  return *pool.threads;
}

// What the threads share.
struct Share {
  Share(int64_t all, const std::function<void(int64_t)>& call, std::ptrdiff_t threads)
      : count(all), work(call), done(threads) {}

  void take_all() {
    try {
      for (int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;  // the others stop
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    done.count_down();
  }

  int64_t count;
  const std::function<void(int64_t)>& work;
  std::latch done;
  std::atomic<int64_t> next{0};
  std::mutex mutex{};
  std::exception_ptr failure{};
};

std::atomic<int> own_threads{0};

}  // namespace

void set_parallel_threads(int threads) { own_threads = threads; }

int parallel_threads() {
  const int threads = own_threads;
  return threads > 0 ? threads : at::get_num_threads();
}

int cores_of_rank() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const char* const ranks = std::getenv("LOCAL_WORLD_SIZE");
  const int sharing = ranks ? std::max(1, std::atoi(ranks)) : 1;
  return std::max(1, CPU_COUNT(&allowed) / sharing);
}

void parallel_for(int64_t count, const std::function<void(int64_t)>& work) {
  const int threads = parallel_threads();
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  auto& pool = pool_of(threads);
  const auto takers = static_cast<std::ptrdiff_t>(std::min<int64_t>(threads, count));
  Share share(count, work, takers);
  for (std::ptrdiff_t i = 0; i < takers; ++i) pool.run([&share] { share.take_all(); });
  share.done.wait();
  if (share.failure) std::rethrow_exception(share.failure);
}

}  // namespace tasks
