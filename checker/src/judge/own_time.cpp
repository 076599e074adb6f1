#include "judge/own_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "process/family.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// The share of one processor below which processes are idle, and the stretch over which that is
// measured.
constexpr double kIdleShare = 0.15, kWindow = 1;

double processor_seconds(const std::string& stat) {
  std::istringstream fields(stat);
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// See sched-stats in the kernel's documentation: nanoseconds run, nanoseconds waited, times run.
double delayed_seconds(const fs::path& thread) {
  std::ifstream file(thread / "schedstat");
  double ran = 0, waited = 0;
  file >> ran >> waited;
  return waited * 1e-9;
}

void add(pid_t process, ProcessorUse& use) {
  const fs::path place = "/proc/" + std::to_string(process);
  use.spent += processor_seconds(stat_fields(place / "stat"));
  std::error_code ended;
  for (fs::directory_iterator thread(place / "task", ended), end; !ended && thread != end;
       thread.increment(ended)) {
    const auto fields = stat_fields(thread->path() / "stat");
    use.wants = use.wants || fields.starts_with('R') || fields.starts_with('D');
    use.delayed += delayed_seconds(thread->path());
  }
}

double in_seconds(OwnTime::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

ProcessorUse processor_use(const std::vector<pid_t>& processes) {
  // In a box, a rank itself is one that its process has started.
  ProcessorUse use;
  for (const pid_t process : families_of(processes)) add(process, use);
  return use;
}

void OwnTime::look(const std::vector<pid_t>& processes, Clock::time_point now) {
  const double length = in_seconds(now - window_);
  if (length < kWindow) return;
  const auto use = meter_(processes);
  const double spent = std::max(0.0, use.spent - spent_);
  const double delayed = std::max(0.0, use.delayed - delayed_);
  const bool little = spent < kIdleShare * length;
  idle_ = little && !use.wants;
  // All processors are the most that anybody can have.
  const double wanted = std::min(spent + delayed, length * std::thread::hardware_concurrency());
  share_ = little ? (use.wants ? 0 : 1) : std::min(1.0, spent / wanted);
  passed_ += share_ * length;
  spent_ = use.spent;
  delayed_ = use.delayed;
  window_ = now;
}

double OwnTime::seconds(Clock::time_point now) const {
  return passed_ + share_ * in_seconds(now - window_);
}

}  // namespace checker
