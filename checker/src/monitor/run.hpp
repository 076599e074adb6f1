#pragma once
/// Puts the records of all ranks of a run together.
#include <filesystem>
#include <string>
#include <vector>

#include "monitor/record.hpp"

namespace checker::monitor {

struct Run {
  std::filesystem::path folder;
  std::vector<RankRecord> ranks;     ///< in their order; at least one
  std::vector<std::string> remarks;  ///< what is damaged, missing or left out, and how clocks agree
  size_t world_size = 1;             ///< as the launcher said; some ranks may have left no record
  size_t older = 0;                  ///< runs beside it, in the same output
  int64_t wall = 0;                  ///< time 0, in nanoseconds since 1970

  /// Seconds from the first rank's start to the last record.
  double duration() const;
  bool ended() const;  ///< all ranks came to a regular end
  bool on_gpus() const;
  std::vector<std::string> hosts() const;
};

/// The run in a folder: of its records, or of the newest run below its folder monitor/. Throws
/// Error if there is none, or none that can be read. last_chunks: as read_record().
Run load_run(const std::filesystem::path& folder, size_t last_chunks = SIZE_MAX);

/// Puts records, which stand on clocks of their own, together. At least one.
Run join_records(std::vector<RankRecord> records);

/// Wall-clock time for people: "2026-11-22 05:14:07".
std::string in_words(int64_t wall_nanoseconds);

}  // namespace checker::monitor
