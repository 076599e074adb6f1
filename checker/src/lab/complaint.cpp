#include "lab/complaint.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <exception>
#include <string>

#include "lab/isolation.hpp"
#include "support/error.hpp"

namespace checker {

Complaint::Complaint() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "make a pipe");
  read_ = Descriptor(ends[0]);
  write_ = Descriptor(ends[1]);
}

void Complaint::guard(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    [[maybe_unused]] const auto written = ::write(write_.get(), what.data(), what.size());
  }
  write_.close();
}

void Complaint::await() {
  write_.close();
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(read_.get(), buffer.data(), buffer.size())) != 0;) {
    if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  if (!text.empty()) throw Error(text);
}

}  // namespace checker
