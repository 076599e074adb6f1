#pragma once
/// What students do instead, and other right ways, by TODO: catalogue/wrong/NN.yaml and
/// catalogue/variants/NN.yaml. The
/// judge never sees it; it is what the judge is tested with.
#include <filesystem>
#include <string>
#include <vector>

#include "ladder/ladder.hpp"

namespace checker {

struct Edit {
  std::string replace, with;  ///< whole lines
  bool all = false;           ///< each occurrence; else there must be one
};

struct CatalogueEntry {
  int todo = 0;
  bool wrong = false;  ///< a wrong edit; else a variant
  std::string name;
  std::string words;  ///< of a wrong edit the belief behind it; of a variant why it is right
  std::vector<Edit> edits;
  bool quick = false;  ///< belongs to the few that every test run judges
};

/// All entries, by TODO, wrong edits first. Throws Error "file:line: what".
std::vector<CatalogueEntry> load_catalogue(const std::filesystem::path& folder);

/// The solution of the TODO's step with the entry's edits. Throws Error if one does not fit.
std::string apply(const CatalogueEntry& entry, std::string text);

}  // namespace checker
