#include "block.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tasks/options.hpp"

namespace tasks::weather {
namespace {

[[noreturn]] void cannot_read(const std::filesystem::path& file, const std::string& reason) {
  throw Error(fmt::format("{}: cannot be read: {}. Fix: copy or download the file again.",
                          file.string(), reason));
}

std::string last_error() { return std::system_category().message(errno); }

}  // namespace

Block::Block(const std::filesystem::path& file, uint64_t begin)
    : file_(file), begin_(begin), descriptor_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) cannot_read(file, last_error());
}

Block::~Block() { close(descriptor_); }

void Block::read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const auto got = pread(descriptor_, into.data(), into.size(), off_t(begin_ + offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(file_, last_error());
    if (got == 0) cannot_read(file_, "it has become shorter");
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
}

}  // namespace tasks::weather
