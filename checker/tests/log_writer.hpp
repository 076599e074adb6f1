#pragma once
/// Makes logs as a rank would.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "evidence/run.hpp"
#include "instrumentation/log.hpp"
#include "support/files.hpp"

namespace checker {

class LogWriter {
 public:
  using Kind = instrumentation::Kind;

  /// What follows is another thread's. The first is 1.
  LogWriter& on_thread(uint32_t thread) {
    thread_ = thread;
    return *this;
  }

  template <class... Numbers>
  LogWriter& add(Kind kind, const Numbers&... numbers) {
    std::string payload;
    (append(payload, numbers), ...);
    return raw(static_cast<uint16_t>(kind), static_cast<uint32_t>(payload.size()), payload);
  }

  /// size: what the record claims; ready: whether it is marked as whole.
  LogWriter& raw(uint16_t kind, uint32_t size, const std::string& payload, bool ready = true) {
    instrumentation::RecordHeader header{.size = size,
                                         .check = 0,
                                         .kind = static_cast<Kind>(kind),
                                         .reserved = 0,
                                         .thread = thread_,
                                         .nanoseconds = ++time_};
    if (ready) header.check = record_check(header, std::as_bytes(std::span(payload)));
    append(bytes_, header);
    bytes_ += payload;
    bytes_.resize(instrumentation::padded(bytes_.size()));
    return *this;
  }

  void write(const std::filesystem::path& file, uint64_t magic = instrumentation::kMagic,
             uint64_t beyond = 0) const {
    instrumentation::Header header{};
    header.magic = magic;
    header.check = header_check(header);
    header.length = sizeof header + bytes_.size() + beyond;
    std::string head;
    append(head, header);
    std::ofstream(file, std::ios::binary) << head << bytes_;
  }

  /// One of a list of tensors.
  static std::string tensor(const std::string& name, int32_t scalar_type, uint64_t elements,
                            const std::string& values = "", bool buffer = false) {
    std::string text;
    append(text, instrumentation::TensorRecord{.scalar_type = scalar_type,
                                               .buffer = buffer ? 1U : 0U,
                                               .name_size = static_cast<uint32_t>(name.size()),
                                               .dimensions = 1,
                                               .elements = elements,
                                               .bytes = values.size()});
    text += name;
    append(text, static_cast<int64_t>(elements));
    text += values;
    text.resize(instrumentation::padded(text.size()));
    return text;
  }

 private:
  template <class T>
  static void append(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void append(std::string& to, const std::string& text) { to += text; }

  std::string bytes_;
  uint64_t time_ = 0;
  uint32_t thread_ = 1;
};

/// What a rank in a world of this size did, by such a log.
inline RankSeen read(const LogWriter& writer, size_t world = 1,
                     Holding holding = Holding::parameters) {
  const TemporaryFolder folder;
  writer.write(folder.path() / "log");
  RankSeen rank;
  rank.place.world_size = world;
  rank.log = read_log(folder.path() / "log");
  interpret(rank, holding);
  return rank;
}

}  // namespace checker
