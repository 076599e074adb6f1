#include "log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace distributed_utils::recorded {

std::vector<Record> Log::of(recording::Kind kind) const {
  std::vector<Record> result;
  for (const auto& record : records) {
    if (record.kind == kind) result.push_back(record);
  }
  return result;
}

Log read_log(const std::filesystem::path& path) {
  using recording::Header;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  EXPECT_EQ(number(offsetof(Header, magic)), recording::kMagic);
  Log log = {.dropped = number(offsetof(Header, dropped)), .records = {}};
  for (size_t at = sizeof(Header); at < number(offsetof(Header, reserved));) {
    recording::RecordHeader header;
    std::memcpy(static_cast<void*>(&header), bytes.data() + at, sizeof header);
    EXPECT_EQ(header.ready.load(), 1);
    log.records.push_back({header.kind, bytes.substr(at + sizeof header, header.size)});
    at += (sizeof header + header.size + 7) / 8 * 8;
  }
  return log;
}

std::filesystem::path make_log(uintmax_t size) {
  const auto path = ranks::shared_folder() / ("log." + std::string(std::getenv("RANK")));
  std::ofstream(path).flush();
  std::filesystem::resize_file(path, size);
  return path;
}

const ranks::Options kRecording = {
    .environment = {{"DISTRIBUTED_UTILS_RECORD", "{folder}/log.{rank}"}}};

}  // namespace distributed_utils::recorded
