#pragma once
/// Reads what one rank recorded (see instrumentation/recording.hpp). The log comes from a process
/// that nobody trusts: whatever does not fit is left out, never believed.
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/log.hpp"
#include "process/descriptor.hpp"

namespace checker {

using instrumentation::Kind;

struct Event {
  Kind kind;
  uint64_t nanoseconds;
  uint64_t thread;
  std::string payload;

  /// The numbers that begin the payload, as one struct; nullopt if it is shorter.
  template <class T>
  std::optional<T> head() const {
    if (payload.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }

  /// The payload from `offset` on as numbers; a rest that makes no whole number is left out.
  template <class T>
  std::vector<T> numbers(size_t offset = 0) const {
    std::vector<T> all(payload.size() < offset ? 0 : (payload.size() - offset) / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), payload.data() + offset, all.size() * sizeof(T));
    return all;
  }
};

struct Log {
  instrumentation::Header header{};  ///< zeros if nothing is recorded
  std::vector<Event> events;
  uint64_t dropped = 0;  ///< records that no longer fitted
  bool broken = false;   ///< something in it was not a log
};

/// Makes an empty log of this length for a rank to record into. Throws Error.
void make_log(const std::filesystem::path& file, uint64_t bytes);

/// Reads a log, of a rank that has ended or of one that still records.
Log read_log(const std::filesystem::path& file);

/// A log that is looked at while its rank runs. It is read, not mapped: a rank that cuts its log
/// short must not take the reader with it.
class LiveLog {
 public:
  explicit LiveLog(const std::filesystem::path& file);

  /// Bytes recorded so far; 0 before the first record.
  uint64_t length() const;
  /// All records that are whole.
  Log read() const;

 private:
  Descriptor file_;
};

}  // namespace checker
