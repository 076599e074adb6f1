#pragma once
/// What a rank's monitoring recorded, read in the simplest way.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "distributed_utils/monitoring.hpp"

namespace distributed_utils::monitored {

struct Record {
  monitoring::Kind kind;
  uint64_t nanoseconds;
  std::string payload;

  template <class T>
  T as() const {
    T value{};
    EXPECT_GE(payload.size(), sizeof(T));
    std::memcpy(&value, payload.data(), std::min(payload.size(), sizeof(T)));
    return value;
  }
};

struct Log {
  monitoring::Header header{};
  std::vector<Record> records;
  size_t bytes = 0;

  std::vector<Record> of(monitoring::Kind kind) const {
    std::vector<Record> some;
    for (const auto& record : records) {
      if (record.kind == kind) some.push_back(record);
    }
    return some;
  }
};

inline Log read_log(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  Log log;
  log.bytes = bytes.size();
  EXPECT_GE(bytes.size(), sizeof(monitoring::Header)) << file;
  if (bytes.size() < sizeof(monitoring::Header)) return log;
  std::memcpy(&log.header, bytes.data(), sizeof(monitoring::Header));
  for (size_t at = sizeof(monitoring::Header);
       at + sizeof(monitoring::RecordHeader) <= bytes.size();) {
    monitoring::RecordHeader head{};
    std::memcpy(&head, bytes.data() + at, sizeof head);
    if (head.check == 0) break;
    const auto payload = head.kind == monitoring::Kind::padding
                             ? std::string()
                             : bytes.substr(at + sizeof head, head.size);
    EXPECT_EQ(monitoring::record_check(head, std::as_bytes(std::span(payload))), head.check);
    if (head.kind != monitoring::Kind::padding)
      log.records.push_back({head.kind, head.nanoseconds, payload});
    at += (sizeof head + head.size + monitoring::kAlignment - 1) / monitoring::kAlignment *
          monitoring::kAlignment;
  }
  return log;
}

/// The one record of this rank below a folder.
inline std::filesystem::path record_below(const std::filesystem::path& folder, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05d.monitor", rank);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / name)) return entry.path() / name;
  }
  return {};
}

}  // namespace distributed_utils::monitored
