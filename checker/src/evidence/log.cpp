#include "evidence/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "evidence/records.hpp"
#include "support/error.hpp"

namespace checker {

namespace {

constexpr uint64_t kLongest = 256U << 20;

// From low to high addresses, so that a record's mark of readiness is read before what it vouches
// for.
std::string read_up_to(int file, uint64_t length) {
  std::string bytes(length, '\0');
  size_t got = 0;
  while (got < length) {
    const auto more = ::pread(file, bytes.data() + got, length - got, static_cast<off_t>(got));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

void make_log(const std::filesystem::path& file, uint64_t bytes) {
  const Descriptor descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!descriptor.is_open() || ::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
    throw Error("Cannot make " + file.string() + ": " + std::strerror(errno) + ".");
  }
}

Log read_log(const std::filesystem::path& file) { return LiveLog(file).read(); }

LiveLog::LiveLog(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}

uint64_t LiveLog::length() const {
  const auto bytes = read_up_to(file_.get(), sizeof(instrumentation::Header));
  if (bytes.size() < sizeof(instrumentation::Header)) return 0;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + offsetof(instrumentation::Header, length), sizeof length);
  return length;
}

Log LiveLog::read() const {
  Log log;
  const auto bytes = read_up_to(file_.get(), std::min(length(), kLongest));
  if (bytes.empty()) return log;  // nothing is recorded yet
  const auto head = read_header(bytes);
  log.broken = !head || head->damaged;
  if (log.broken) return log;
  log.header = head->header;
  log.dropped = head->header.dropped;
  const auto damaged = read_records(bytes, [&](const RecordRead& record) {
    log.events.push_back({.kind = record.kind,
                          .nanoseconds = record.nanoseconds,
                          .thread = record.thread,
                          .payload = std::string(record.payload)});
  });
  log.broken = damaged > 0;
  return log;
}

}  // namespace checker
