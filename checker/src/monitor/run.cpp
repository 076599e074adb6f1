#include "monitor/run.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <set>

#include "monitor/figures.hpp"
#include "monitor/words.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace fs = std::filesystem;

namespace {

// Ranks of one run start within this time; the same name of a run may come again later.
constexpr int64_t kStartTogether = 600'000'000'000;

std::vector<fs::path> records_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == instrumentation::kMonitorExtension) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// Where a run's records lie.
struct Place {
  fs::path folder;   ///< empty: nowhere
  size_t older = 0;  ///< runs beside it
};

// The run below this folder whose records were written last.
Place newest_below(const fs::path& folder) {
  Place newest;
  size_t runs = 0;
  fs::file_time_type latest{};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    const auto files = records_in(entry.path());
    runs += files.empty() ? 0 : 1;
    for (const auto& file : files) {
      const auto time = fs::last_write_time(file, ignored);
      if (newest.folder.empty() || time > latest) {
        newest.folder = entry.path();
        latest = time;
      }
    }
  }
  if (runs > 0) newest.older = runs - 1;
  return newest;
}

Place find_records(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    throw Error("There is no " + folder.string() + ". Name the output folder of a run.");
  }
  if (!records_in(folder).empty()) return {folder};
  for (const auto& place : {folder / "monitor", folder}) {
    if (auto newest = newest_below(place); !newest.folder.empty()) return newest;
  }
  throw Error(folder.string() +
              " holds no record of a run. Fix: train with --monitor and name its output folder.");
}

// Of several runs in one folder the newest stays.
void leave_out_strangers(std::vector<RankRecord>& records, std::vector<std::string>& remarks) {
  const auto newest = std::ranges::max_element(records, {}, [](const RankRecord& record) {
                        return record.header.wall;
                      })->header;
  std::erase_if(records, [&](const RankRecord& record) {
    const auto& header = record.header;
    if (header.run == newest.run && header.world_size == newest.world_size &&
        newest.wall - header.wall < kStartTogether) {
      return false;
    }
    remarks.push_back(record.file.filename().string() + " belongs to another run, started " +
                      in_words(header.wall) + " with " + count_of(header.world_size, "rank") +
                      "; skipped it.");
    return true;
  });
  std::ranges::stable_sort(records, {}, &RankRecord::rank);
  std::set<uint32_t> seen;
  std::erase_if(records, [&](const RankRecord& record) {
    if (seen.insert(record.rank()).second) return false;
    remarks.push_back("There are two records of rank " + std::to_string(record.rank()) +
                      "; skipped one.");
    return true;
  });
}

// Clocks of one machine are one; those of others differ by as much as their collectives seem to end
// apart.
void agree_on_clocks(Run& run) {
  const auto origin = run.ranks.front().header;
  for (auto& record : run.ranks) {
    const auto& header = record.header;
    const bool same = record.host() == origin.host;
    const auto apart = same ? static_cast<int64_t>(header.nanoseconds - origin.nanoseconds)
                            : header.wall - origin.wall;
    shift(record, static_cast<double>(apart) * 1e-9);
  }
  double earliest = 0;
  for (const auto& record : run.ranks) {
    earliest = std::min(earliest, static_cast<double>(record.header.wall - origin.wall) * 1e-9);
  }
  run.wall = origin.wall + static_cast<int64_t>(earliest * 1e9);
  for (auto& record : run.ranks) shift(record, -earliest);
  double largest = 0;
  for (const auto& [host, seconds] : clock_offsets(run)) {
    for (auto& record : run.ranks) {
      if (record.host() == host) shift(record, -seconds);
    }
    largest = std::max(largest, std::abs(seconds));
  }
  if (largest > 0) {
    run.remarks.push_back("The nodes' clocks were up to " + shown_seconds(largest) +
                          " apart. They were aligned by the ends of common collectives.");
  }
}

void remark_on(const RankRecord& record, std::vector<std::string>& remarks) {
  const auto rank = "Rank " + std::to_string(record.rank());
  if (record.lost > 0) {
    remarks.push_back(rank + ": " + shown_bytes(static_cast<double>(record.lost)) +
                      " of its record are damaged and were skipped.");
  }
  if (record.cut_short) {
    remarks.push_back(rank + ": its record is cut short, so the page shows a part.");
  }
}

}  // namespace

double Run::duration() const {
  double last = 0;
  for (const auto& rank : ranks) last = std::max(last, rank.last);
  return last;
}

bool Run::ended() const { return std::ranges::all_of(ranks, &RankRecord::ended); }

bool Run::on_gpus() const {
  return std::ranges::any_of(ranks,
                             [](const auto& rank) { return rank.device.starts_with("cuda"); });
}

std::vector<std::string> Run::hosts() const {
  std::set<std::string> names;
  for (const auto& rank : ranks) names.insert(rank.host());
  return {names.begin(), names.end()};
}

Run join_records(std::vector<RankRecord> records) {
  Run run;
  leave_out_strangers(records, run.remarks);
  run.ranks = std::move(records);
  run.world_size = run.ranks.front().header.world_size;
  agree_on_clocks(run);
  std::set<size_t> missing;
  for (size_t rank = 0; rank < run.world_size; ++rank) missing.insert(rank);
  for (const auto& record : run.ranks) {
    missing.erase(record.rank());
    remark_on(record, run.remarks);
  }
  for (const auto rank : missing) {
    run.remarks.push_back("Rank " + std::to_string(rank) + " left no record.");
  }
  return run;
}

Run load_run(const fs::path& folder, size_t last_chunks) {
  const auto place = find_records(folder);
  std::vector<RankRecord> records;
  std::vector<std::string> unreadable;
  for (const auto& file : records_in(place.folder)) {
    try {
      records.push_back(read_record(file, last_chunks));
    } catch (const Error& error) {
      unreadable.emplace_back(error.what());
    }
  }
  if (records.empty()) throw Error(unreadable.front());
  auto run = join_records(std::move(records));
  run.folder = place.folder;
  run.older = place.older;
  run.remarks.insert(run.remarks.begin(), unreadable.begin(), unreadable.end());
  return run;
}

std::string in_words(int64_t wall_nanoseconds) {
  const auto seconds = static_cast<std::time_t>(wall_nanoseconds / 1'000'000'000);
  std::tm time{};
  std::array<char, 32> text{};
  if (::localtime_r(&seconds, &time) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &time) == 0) {
    return "at an unknown time";
  }
  return text.data();
}

}  // namespace checker::monitor
