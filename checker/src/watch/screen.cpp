#include "watch/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "terminal/terminal.hpp"

namespace checker {

namespace {

constexpr std::string_view hide_cursor = "\033[?25l", show_cursor = "\033[?25h";
constexpr std::string_view wrap_off = "\033[?7l", wrap_on = "\033[?7h";

// In one piece, so that nobody sees half a page.
void put_all(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

size_t Screen::rows() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return 24;
  return std::max<size_t>(6, size.ws_row);
}

Screen::Screen() { put_all(std::string(hide_cursor) + std::string(rows(), '\n')); }

Screen::~Screen() {
  put_all("\033[" + std::to_string(height_ + 1) + ";1H" + std::string(wrap_on) +
          std::string(show_cursor));
}

void Screen::draw(const std::vector<std::string>& lines) {
  // A window of another size has been rearranged by the terminal: that asks for a fresh page.
  const auto size = std::to_string(rows()) + "x" + std::to_string(terminal::width());
  std::string page = size;
  for (const auto& line : lines) page += "\n" + line;
  if (page == last_) return;
  std::string text(wrap_off);
  if (!last_.starts_with(size + "\n")) text += "\033[2J";
  text += "\033[H";
  for (const auto& line : lines) text += "\033[K" + line + "\r\n";
  text += "\033[J" + std::string(wrap_on);
  height_ = lines.size();
  last_ = std::move(page);
  put_all(text);
}

}  // namespace checker
