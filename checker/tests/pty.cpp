#include "pty.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

namespace checker::testing {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{30};

Terminal::Terminal(int rows, int columns) : outer_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  ::grantpt(outer_.get());
  ::unlockpt(outer_.get());
  inner_ = Descriptor(::open(::ptsname(outer_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(outer_.get(), TIOCSWINSZ, &size);
}

Terminal::~Terminal() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Terminal::run(const std::function<int()>& program) {
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setsid();
  ::ioctl(inner_.get(), TIOCSCTTY, 0);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(inner_.get(), stream);
  }
  ::_exit(program());
}

void Terminal::type(const std::string& keys) const {
  ASSERT_EQ(::write(outer_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool Terminal::read(std::chrono::milliseconds time) {
  pollfd output{outer_.get(), POLLIN, 0};
  if (::poll(&output, 1, static_cast<int>(time.count())) <= 0) return false;
  std::array<char, 4096> bytes{};
  const auto got = ::read(outer_.get(), bytes.data(), bytes.size());
  if (got > 0) shown_.append(bytes.data(), static_cast<size_t>(got));
  return got > 0;
}

std::string Terminal::wait_for(const std::string& text) {
  const auto deadline = Clock::now() + patience;
  while (shown_.find(text) == shown_.npos && Clock::now() < deadline) {
    read(std::chrono::milliseconds(50));
  }
  EXPECT_NE(shown_.find(text), shown_.npos) << "no \"" << text << "\" in:\n" << shown_;
  return shown_;
}

void Terminal::signal(int number) const { ::kill(pid_, number); }

int Terminal::end() {
  const auto deadline = Clock::now() + patience;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    read(std::chrono::milliseconds(10));  // nobody ends while its terminal is full
    if (Clock::now() < deadline) continue;
    ADD_FAILURE() << "the program does not end";
    return -1;
  }
  pid_ = -1;
  while (read(std::chrono::milliseconds(0))) continue;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

termios Terminal::settings() const {
  termios settings{};
  ::tcgetattr(inner_.get(), &settings);
  return settings;
}

}  // namespace checker::testing
