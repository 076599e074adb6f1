#include "watch/keyboard.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>

namespace checker {

Keyboard::Keyboard() {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // nobody would redraw after fg
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

Keyboard::~Keyboard() {
  // What was typed ahead was meant for us, not for the shell.
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

std::optional<char> Keyboard::read() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, 0) <= 0) return std::nullopt;
  char key = 0;
  const auto got = ::read(STDIN_FILENO, &key, 1);
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return 'q';
  if (got < 0) return std::nullopt;
  if (key == '\033') {  // arrows and their like come as several bytes, this the first: none of ours
    std::array<char, 64> rest{};
    while (::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, rest.data(), rest.size()) > 0) continue;
    return std::nullopt;
  }
  return static_cast<char>(std::tolower(static_cast<unsigned char>(key)));
}

}  // namespace checker
