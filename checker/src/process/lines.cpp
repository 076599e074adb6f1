#include "process/lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "terminal/terminal.hpp"

namespace checker {

void LineCutter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto take = std::min(end == bytes.npos ? bytes.size() : end, longest - rest_.size());
    rest_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    const bool whole = !bytes.empty() && bytes.front() == '\n';
    if (whole) bytes.remove_prefix(1);
    if (whole || rest_.size() == longest) {
      if (whole && rest_.ends_with('\r')) rest_.pop_back();
      sink_(rest_);
      rest_.clear();
    }
  }
}

void LineCutter::finish() {
  if (!rest_.empty()) sink_(rest_);
  rest_.clear();
}

std::string rank_label(size_t rank, size_t world_size, int descriptor) {
  const auto width = std::to_string(world_size - 1).size();
  std::string number = std::to_string(rank);
  number.insert(0, width - number.size(), ' ');
  const std::string label = "[rank " + number + "] ";
  return terminal::styled(terminal::Style::dim, label, descriptor);
}

bool write_line(int descriptor, std::string_view label, std::string_view line) {
  std::string whole(label);
  whole.append(line).append("\n");
  std::string_view rest = whole;
  while (!rest.empty()) {
    const auto written = ::write(descriptor, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{descriptor, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace checker
