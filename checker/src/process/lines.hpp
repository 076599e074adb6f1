#pragma once
/// Whole lines out of what a process writes, and labels in front of them.
#include <functional>
#include <string>
#include <string_view>

namespace checker {

/// Cuts a stream of bytes into lines. A line longer than 64 KiB comes in pieces, so that a process
/// that never ends its line costs no memory.
class LineCutter {
 public:
  using Sink = std::function<void(std::string_view line)>;
  static constexpr size_t longest = 64UL * 1024;

  explicit LineCutter(Sink sink) : sink_(std::move(sink)) {}

  void feed(std::string_view bytes);
  /// The end of the stream: what is left is a line too.
  void finish();

 private:
  Sink sink_;
  std::string rest_;
};

/// "[rank 3] ", padded so that the text of all ranks begins in the same column; dim on a terminal.
std::string rank_label(size_t rank, size_t world_size, int descriptor);

/// Writes one line, with its end, to a descriptor in one piece. False if nobody reads it any more.
bool write_line(int descriptor, std::string_view label, std::string_view line);

}  // namespace checker
