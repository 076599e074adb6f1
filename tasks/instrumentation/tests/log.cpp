#include "log.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace instrumentation {

std::vector<Record> Log::of(Kind kind) const {
  std::vector<Record> some;
  for (const auto& record : records) {
    if (record.kind == kind) some.push_back(record);
  }
  return some;
}

Log read_log(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  Log log;
  log.bytes = bytes.size();
  EXPECT_GE(bytes.size(), sizeof(Header)) << path;
  if (bytes.size() < sizeof(Header)) return log;
  std::memcpy(&log.header, bytes.data(), sizeof(Header));
  EXPECT_EQ(log.header.magic, kMagic);
  EXPECT_EQ(log.header.check, header_check(log.header));
  for (size_t at = sizeof(Header); at < log.header.length;) {
    if (kChunk - at % kChunk < sizeof(RecordHeader)) at = (at / kChunk + 1) * kChunk;
    RecordHeader head{};
    std::memcpy(&head, bytes.data() + at, sizeof head);
    const auto payload = bytes.substr(at + sizeof head, head.size);
    EXPECT_EQ(record_check(head, std::as_bytes(std::span(payload))), head.check) << at;
    if (head.check == 0) break;
    if (head.kind != Kind::padding) log.records.push_back({head.kind, head.nanoseconds, payload});
    at += padded(sizeof head + head.size);
  }
  return log;
}

std::filesystem::path make_log(uintmax_t size) {
  const auto path = ranks::shared_folder() / ("log." + std::string(std::getenv("RANK")));
  std::ofstream(path).flush();
  std::filesystem::resize_file(path, size);
  return path;
}

const ranks::Options kRecording = {.environment = {{"WORLDSIZE_RECORD", "{folder}/log.{rank}"}}};

std::filesystem::path monitor_log_below(const std::filesystem::path& folder, int rank) {
  const auto name = fmt::format("rank-{:05}{}", rank, kMonitorExtension);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / name)) return entry.path() / name;
  }
  return {};
}

}  // namespace instrumentation
