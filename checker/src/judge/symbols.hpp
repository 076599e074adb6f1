#pragma once
/// Turns return addresses into lines of the student's program.
#include <filesystem>
#include <map>
#include <string>

#include "box/box.hpp"
#include "evidence/run.hpp"

namespace checker {

/// Asks addr2line; where there is none, nothing is located.
class Symbols {
 public:
  /// program: what ran; source: the file with main(), whose lines are to be named, and those of the
  /// files beside it; shown: how to name it. box: where addr2line is shut in, for it reads the
  /// program; may be null, must outlive this.
  Symbols(std::filesystem::path program, std::filesystem::path source, std::string shown,
          const Box* box);

  /// "steps/05_all_reduce_loss/train.cpp:48": the innermost frame in the sources, or an empty text
  /// (a collective that DistributedDataParallel issues from the backward pass has none).
  std::string locate(const RankSeen& rank, const CollectiveSeen& collective);

 private:
  std::string line_of(const std::vector<uint64_t>& offsets);

  std::filesystem::path program_, source_;
  std::string shown_, inode_;
  const Box* box_;
  std::map<std::vector<uint64_t>, std::string> known_;
};

}  // namespace checker
