#pragma once
/// Bytes that lie one behind the other in a file, read without HDF5, which lets one thread in at a
/// time.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace tasks::weather {

class Block {
 public:
  /// begin: of the block in the file, in bytes. Throws Error, naming the file.
  Block(const std::filesystem::path& file, uint64_t begin);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// Fills `into` with what follows `offset` bytes of the block. Threads read side by side. Throws
  /// Error, naming the file, if it ends before or cannot be read.
  void read(uint64_t offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path file_;
  uint64_t begin_;
  int descriptor_;
};

}  // namespace tasks::weather
