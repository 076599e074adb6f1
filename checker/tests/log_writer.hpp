#pragma once
/// Makes logs as a rank would.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "distributed_utils/recording.hpp"

namespace checker {

class LogWriter {
 public:
  using Kind = distributed_utils::recording::Kind;

  template <class... Numbers>
  LogWriter& add(Kind kind, const Numbers&... numbers) {
    std::string payload;
    (append(payload, numbers), ...);
    return raw(static_cast<uint16_t>(kind), static_cast<uint32_t>(payload.size()), payload, true);
  }

  /// size: what the record claims; ready: whether it is marked as whole.
  LogWriter& raw(uint16_t kind, uint32_t size, const std::string& payload, bool ready) {
    append(bytes_, size);
    append(bytes_, kind);
    append(bytes_, static_cast<uint16_t>(ready ? 1 : 0));
    append(bytes_, ++time_);
    append(bytes_, uint64_t{1});
    bytes_ += payload;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return *this;
  }

  void write(const std::filesystem::path& file,
             uint64_t magic = distributed_utils::recording::kMagic, int64_t beyond = 0) const {
    std::string head;
    append(head, magic);
    append(head, static_cast<uint64_t>(24 + static_cast<int64_t>(bytes_.size()) + beyond));
    append(head, uint64_t{0});
    std::ofstream(file, std::ios::binary) << head << bytes_;
  }

 private:
  template <class T>
  static void append(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void append(std::string& to, const std::string& text) { to += text; }

  std::string bytes_;
  uint64_t time_ = 0;
};

}  // namespace checker
