#pragma once
/// Makes records as a monitored rank would.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "instrumentation/log.hpp"

namespace checker::testing {

namespace format = instrumentation;

struct Place {
  uint32_t rank = 0, world_size = 1;
  std::string host = "node1";
  uint64_t run = 42;
  double wall = 1000;  ///< seconds since 1970 at the start, by the host's clock
  double clock = 50;   ///< seconds of CLOCK_MONOTONIC at the start
};

class RecordWriter {
 public:
  explicit RecordWriter(const Place& place = {}) : clock_(place.clock) {
    format::Header header{};
    header.magic = format::kMagic;
    header.run = place.run;
    header.wall = static_cast<int64_t>(place.wall * 1e9);
    header.nanoseconds = at(0);
    header.rank = header.local_rank = place.rank;
    header.world_size = place.world_size;
    std::strncpy(header.host, place.host.c_str(), sizeof header.host - 1);
    header.check = format::header_check(header);
    append(&header, sizeof header);
  }

  /// So many seconds after the rank's start.
  uint64_t at(double seconds) const { return static_cast<uint64_t>((clock_ + seconds) * 1e9); }

  RecordWriter& text(format::Kind kind, double seconds, const std::string& payload) {
    const size_t size = format::padded(sizeof(format::RecordHeader) + payload.size());
    const size_t left = format::kChunk - bytes.size() % format::kChunk;
    if (size > left) {
      if (left >= sizeof(format::RecordHeader)) {
        record(format::Kind::padding, 0, "", left - sizeof(format::RecordHeader));
      }
      bytes.resize((bytes.size() + format::kChunk - 1) / format::kChunk * format::kChunk);
    }
    record(kind, at(seconds), payload, payload.size());
    bytes.resize(format::padded(bytes.size()));
    return *this;
  }
  template <class Record>
  RecordWriter& add(format::Kind kind, double seconds, const Record& payload) {
    return text(kind, seconds, {reinterpret_cast<const char*>(&payload), sizeof payload});
  }
  RecordWriter& group(const std::string& name, uint32_t rank, uint32_t size) {
    const format::GroupRecord record{0, rank, size, static_cast<uint32_t>(name.size())};
    return text(format::Kind::group, 0,
                std::string(reinterpret_cast<const char*>(&record), sizeof record) + name);
  }
  /// A step from `begin` to `end`, a quarter of it in each phase, with a loss.
  RecordWriter& step(uint64_t number, double begin, double end, double loss) {
    format::StepRecord record{};
    record.step = number;
    record.begin = at(begin);
    for (auto& phase : record.phases) phase = static_cast<uint64_t>((end - begin) * 0.25e9);
    record.targets = 100;
    record.learning_rate = 0.5;
    add(format::Kind::step, end, record);
    return add(format::Kind::step_loss, end, format::StepLossRecord{number, loss});
  }
  /// on_gpu: seconds that its kernel ran; 0: not known, as on CPUs.
  RecordWriter& all_reduce(uint64_t sequence, double begin, double end, double on_gpu = 0) {
    format::CollectiveRecord call{};
    call.sequence = sequence;
    call.bytes = 4096;
    call.op_type = 1;
    add(format::Kind::collective, begin, call);
    return add(format::Kind::completed, end,
               format::CompletedRecord{.sequence = sequence,
                                       .on_gpu = static_cast<uint64_t>(on_gpu * 1e9),
                                       .group = 0,
                                       .failed = 0});
  }
  /// What runs until the next one, or until Phase::none.
  RecordWriter& phase(format::Phase what, double begin, uint64_t step = 1) {
    return add(format::Kind::phase, begin,
               format::PhaseRecord{.phase = what, .split = format::kUnknown, .step = step});
  }

  /// As a file is: whole chunks, or as many bytes of them.
  std::string file(size_t length = SIZE_MAX) const {
    auto all = bytes;
    all.resize((all.size() + format::kChunk - 1) / format::kChunk * format::kChunk);
    return all.substr(0, length);
  }
  void write(const std::filesystem::path& path, size_t length = SIZE_MAX) const {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << file(length);
  }

  std::string bytes;

 private:
  void append(const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }
  void record(format::Kind kind, uint64_t time, const std::string& payload, size_t size) {
    format::RecordHeader header{static_cast<uint32_t>(size), 0, kind, 0, 1, time};
    header.check = format::record_check(header, std::as_bytes(std::span(payload)));
    append(&header, sizeof header);
    bytes += payload;
  }

  double clock_;
};

}  // namespace checker::testing
