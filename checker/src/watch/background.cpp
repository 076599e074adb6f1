#include "watch/background.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "process/lines.hpp"
#include "report/json.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

// How long the judge has to end its ranks and to remove its files.
constexpr std::chrono::milliseconds patience{4000};

// News are lines: one letter, then a text without line ends.
void send(int descriptor, char kind, std::string text) {
  for (auto& c : text) c = c == '\n' ? ' ' : c;
  write_line(descriptor, std::string(1, kind), text);
}

// The life of the judge's process. SIGTERM stays blocked, as it is here: run_ranks reads it and
// ends its ranks, and nothing is interrupted between creating a folder and removing it.
void judge_and_tell(int news, pid_t parent, const Judge& judge, const Course& course,
                    const Step& step, CheckOptions options) {
  ::setpgid(0, 0);  // Ctrl-C is for the one who looks on
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  options.on_stage = [&](std::string_view text) { send(news, 's', std::string(text)); };
  try {
    send(news, 'r', to_json(judge(course, step, options)));
  } catch (const std::exception& error) {
    send(news, 'e', error.what());
  }
}

bool ends_within(pid_t pid, std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 10);
  }
  return true;
}

}  // namespace

BackgroundJudge::BackgroundJudge(const Judge& judge, const Course& course, const Step& step,
                                 CheckOptions options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(std::string("Cannot make a pipe: ") + std::strerror(errno) + ".");
  }
  news_ = Descriptor(ends[0]);
  Descriptor tell(ends[1]);
  ::fcntl(news_.get(), F_SETFL, O_NONBLOCK);
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Error(std::string("Cannot start a process: ") + std::strerror(errno) + ".");
  if (pid_ == 0) {
    judge_and_tell(tell.get(), parent, judge, course, step, std::move(options));
    ::_exit(0);
  }
}

BackgroundJudge::~BackgroundJudge() {
  if (pid_ < 0) return;
  news_.close();
  ::kill(pid_, SIGTERM);
  if (ends_within(pid_, patience)) return;
  ::kill(pid_, SIGKILL);  // its ranks die with it, see spawn()
  ::waitpid(pid_, nullptr, 0);
}

bool BackgroundJudge::read() {
  std::array<char, 16 * 1024> buffer{};
  while (pid_ >= 0) {
    const auto got = ::read(news_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    rest_.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = rest_.find('\n')) != rest_.npos; rest_.erase(0, end + 1)) {
      take(rest_.substr(0, end));
    }
    if (got > 0) continue;
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  return true;
}

void BackgroundJudge::take(const std::string& line) {
  if (line.empty()) return;
  const auto text = line.substr(1);
  switch (line.front()) {
    case 's':
      stage_ = text;
      break;
    case 'r':
      report_ = text;
      break;
    default:
      error_ = text;
  }
}

Report BackgroundJudge::result() const {
  if (!report_.empty()) return report_from_json(report_);
  throw Error(error_.empty() ? "The check ended without a verdict." : error_);
}

}  // namespace checker
