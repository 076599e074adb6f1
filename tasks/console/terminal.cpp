#include "console/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace console {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool can_draw(int descriptor) { return is_terminal(descriptor) && variable("TERM") != "dumb"; }

bool has_colour(int descriptor) { return can_draw(descriptor) && variable("NO_COLOR").empty(); }

int width(int descriptor, int otherwise) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

}  // namespace console
