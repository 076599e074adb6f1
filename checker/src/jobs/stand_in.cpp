#include "jobs/stand_in.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "jobs/torchrun_call.hpp"
#include "process/family.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kNap = 10ms;
constexpr auto kLongest = 120s;  // nobody ever waits that long for a rank
constexpr int kMostRanks = 16;
constexpr unsigned kUsr1Bit = 1U << (SIGUSR1 - 1);

std::atomic<int> told{0};  // the signal that did
std::atomic<bool> ending{false};

void note_told(int signal) { told = signal; }
void note_end(int /*signal*/) { ending = true; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

void write_whole(const fs::path& file, const std::string& text) {
  const fs::path draft = file.string() + "-draft";
  write_file(draft, text);
  fs::rename(draft, file);
}

// The number after a key of /proc's status: "SigIgn:	0000000000000200".
uint64_t status_number(const std::string& status, const std::string& key, int base) {
  const auto at = status.find("\n" + key + ":");
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + key.size() + 2, nullptr, base);
}

// A process between Slurm and a rank.
struct Above {
  pid_t process;
  std::string name;
  bool dies;  // of SIGUSR1

  bool is_gone() const { return name_of(process).empty() || is_zombie(process); }
};

std::string status_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// From the parent up to, but without, Slurm's own process.
std::vector<Above> all_above() {
  std::vector<Above> all;
  for (pid_t process = ::getppid(); process > 1;) {
    const auto status = status_of(process);
    auto name = name_of(process);
    if (status.empty() || name == "slurmstepd") break;
    if (name == "checker") name = "torchrun";
    const auto heeded = status_number(status, "SigIgn", 16) | status_number(status, "SigCgt", 16);
    all.push_back({process, std::move(name), (heeded & kUsr1Bit) == 0});
    process = static_cast<pid_t>(status_number(status, "PPid", 10));
  }
  return all;
}

bool come_to_an_end(const std::vector<pid_t>& ranks) {
  bool well = true;
  for (size_t ended = 0; ended < ranks.size();) {
    int status = 0;
    const pid_t process = ::waitpid(-1, &status, 0);
    if (process < 0 && errno != EINTR) return false;
    const bool fine = process > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ended += process > 0 ? 1 : 0;
    if (fine || (process < 0 && !ending)) continue;
    // As torchrun: one that fails, and one's own end, are the end of all.
    for (const pid_t rank : ranks) ::kill(rank, SIGTERM);
    well = false;
    ending = false;
  }
  return well;
}

}  // namespace

int stand_in_for_torchrun(std::span<const std::string> words) {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    environment[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  const auto call = parse_torchrun(words, environment);
  if (!call.has_program) return 2;
  handle(SIGTERM, note_end);
  std::vector<char*> arguments{const_cast<char*>(call.program.c_str())};
  for (const auto& word : call.arguments) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<pid_t> ranks;
  const int count = std::clamp(whole_number(call.option("nproc-per-node"), 1), 1, kMostRanks);
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      ::signal(SIGTERM, SIG_DFL);
      ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    if (process > 0) ranks.push_back(process);
  }
  return come_to_an_end(ranks) && std::cmp_equal(ranks.size(), count) ? 0 : 1;
}

int stand_in_for_rank(const fs::path& file) {
  const auto with = [&](const char* suffix) { return fs::path(file.string() + suffix); };
  // What goes on after a signal and then fails must not be queued again forever.
  const char* restarts = std::getenv("SLURM_RESTART_COUNT");
  if (restarts != nullptr && whole_number(restarts, 0) > 0) return 1;
  // The trainer saves on both.
  for (const int signal : {SIGUSR1, SIGTERM}) handle(signal, note_told);
  const auto above = all_above();
  write_whole(with(kReady), "");
  const auto deadline = Clock::now() + kLongest;
  while (told == 0 && Clock::now() < deadline) std::this_thread::sleep_for(kNap);
  if (told == 0) return 1;
  write_whole(with(kTold), told == SIGUSR1 ? kBySignal : "");
  while (Clock::now() < deadline && !fs::exists(file.parent_path() / kMayStop)) {
    const auto lost = std::ranges::find_if(
        above, [](const Above& process) { return process.dies && process.is_gone(); });
    if (lost != above.end()) {
      write_whole(with(kLost), lost->name);
      return 1;
    }
    std::this_thread::sleep_for(kNap);
  }
  return 0;
}

}  // namespace checker
