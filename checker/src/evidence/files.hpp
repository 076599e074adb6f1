#pragma once
/// Finds out which rank wrote which files, and which rank changed another rank's files.
#include <optional>

#include "evidence/run.hpp"

namespace checker {

/// Fills in RankSeen::files. Where ranks have a folder each, those in it. Where they share one, the
/// files that are left of what a rank wrote or moved there, and those that it wrote where rank 0
/// wrote as well. What nobody was seen to write is rank 0's. world: the folder of the run.
void tell_files(Run& run, const std::filesystem::path& world);

/// A rank's change of a file.
struct ChangeByRank {
  size_t rank = 0;
  FileChange change;
};

/// The first time that another rank moved or removed a file that rank 0 had written, and that it
/// had not written itself.
std::optional<ChangeByRank> first_foreign_change(const Run& run);

/// Whether another rank too has written, moved or removed the file of this change.
bool changed_by_others(const Run& run, size_t rank, const FileChange& change);

}  // namespace checker
