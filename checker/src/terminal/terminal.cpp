#include "terminal/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "console/terminal.hpp"
#include "support/text.hpp"

namespace checker::terminal {

namespace {

std::string_view code(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\033[1m";
    case Style::dim:
      return "\033[2m";
    case Style::red:
      return "\033[31m";
    case Style::green:
      return "\033[32m";
    case Style::yellow:
      return "\033[33m";
  }
  return "";
}

void put(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

}  // namespace

size_t width() { return static_cast<size_t>(std::max(20, console::width(STDOUT_FILENO, 100))); }

std::string styled(Style style, std::string_view text, int descriptor) {
  if (style == Style::plain || !console::has_colour(descriptor)) return std::string(text);
  return std::string(code(style)) + std::string(text) + "\033[0m";
}

void say(std::string_view line) { put(stdout, std::string(line) + "\n"); }

void complain(std::string_view message) {
  put(stderr, styled(Style::red, "error:", STDERR_FILENO) + " " + std::string(message) + "\n");
}

Stage::Stage(std::string title)
    : title_(std::move(title)),
      draws_(console::can_draw(STDOUT_FILENO)),
      start_(std::chrono::steady_clock::now()) {
  note("");
}

Stage::~Stage() {
  if (!ended_ && draws_) put(stdout, "\n");
}

void Stage::note(std::string_view text) {
  if (!draws_) return;
  std::string line = "  " + title_ + " ... " + std::string(text);
  if (line.size() >= width()) line.resize(width() - 1);
  put(stdout, "\r\033[K" + line);
}

void Stage::idle() {
  ended_ = true;
  if (draws_) put(stdout, "\r\033[K");
}

void Stage::done() { end(Style::green, "done"); }
void Stage::failed() { end(Style::red, "failed"); }

void Stage::end(Style style, std::string_view mark) {
  ended_ = true;
  put(stdout, (draws_ ? "\r\033[K" : "") + ("  " + title_ + ": ") + styled(style, mark) + " (" +
                  format_seconds(seconds()) + ")\n");
}

double Stage::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace checker::terminal
