#include "evidence/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "support/error.hpp"

namespace checker {

namespace {

namespace recording = distributed_utils::recording;

constexpr uint64_t kLongest = 256U << 20;

// The structs of the log without their atomics: what is read here is a copy.
struct Head {
  uint64_t magic, reserved, dropped;
};
struct RecordHead {
  uint32_t size;
  uint16_t kind, ready;
  uint64_t nanoseconds, thread;
};
static_assert(sizeof(Head) == sizeof(recording::Header));
static_assert(sizeof(RecordHead) == sizeof(recording::RecordHeader));

template <class T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

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
  const auto head = read_up_to(file_.get(), sizeof(Head));
  return head.size() < sizeof(Head) ? 0 : load<Head>(head, 0).reserved;
}

Log LiveLog::read() const {
  Log log;
  const auto bytes = read_up_to(file_.get(), std::min(length(), kLongest));
  if (bytes.size() < sizeof(Head)) return log;  // nothing is recorded yet
  const auto head = load<Head>(bytes, 0);
  log.dropped = head.dropped;
  log.broken = head.magic != recording::kMagic;
  for (size_t at = sizeof(Head); !log.broken && at + sizeof(RecordHead) <= bytes.size();) {
    const auto record = load<RecordHead>(bytes, at);
    if (record.ready != 1) break;  // the rank died, or is about to write it
    const size_t from = at + sizeof(RecordHead);
    log.broken = record.size > bytes.size() - from;
    if (log.broken) break;
    log.events.push_back({.kind = static_cast<Kind>(record.kind),
                          .nanoseconds = record.nanoseconds,
                          .thread = record.thread,
                          .payload = bytes.substr(from, record.size)});
    at += (sizeof(RecordHead) + record.size + 7) / 8 * 8;
  }
  return log;
}

}  // namespace checker
