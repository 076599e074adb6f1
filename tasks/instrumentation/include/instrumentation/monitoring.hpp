#pragma once
/// What a run did and used, for people to look at: one log a rank, so that a run that is killed
/// leaves what was sampled, and ranks on many nodes write side by side without locks. Off until
/// start(); off, a seam costs one branch.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "instrumentation/events.hpp"

namespace instrumentation::monitoring {

struct StartOptions {
  /// Gets a folder of its own for each run, with a file for each rank.
  std::filesystem::path folder;
  std::string configuration = {};  ///< as Kind::configuration
  std::chrono::milliseconds interval{500};
};

/// Begins to monitor this process, until it exits. Rank and world come from the launcher's
/// environment. Throws Error if the file cannot be made, or if this process is monitored already.
void start(const StartOptions& options);

/// True after start().
bool enabled();

/// The time of records, now.
uint64_t now();

/// Appends one record of this moment, or of `time`. Thread-safe. Once the disk is full, or the file
/// larger than a run should leave behind, nothing more is recorded.
void record(Kind kind, std::span<const std::byte> payload, uint64_t time = now());
template <class Record>
void record_one(Kind kind, const Record& payload, uint64_t time = now()) {
  record(kind, std::as_bytes(std::span(&payload, 1)), time);
}
void record_text(Kind kind, std::string_view text);
/// A record with text behind it.
template <class Record>
void record_named(Kind kind, const Record& payload, std::string_view text) {
  std::string bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
  record_text(kind, bytes.append(text));
}

/// Whether what happens in this step is to be recorded one by one: at first always, later in twenty
/// steps of every thousand.
bool wants_details(uint64_t step);
/// Of the step that runs.
bool wants_details();
/// The step that now begins; collectives, too, are recorded one by one if it wants_details().
void set_step(uint64_t step);

/// Nanoseconds, up to now and since it was last asked, in which a collective was under way.
uint64_t collective_time();

}  // namespace instrumentation::monitoring
