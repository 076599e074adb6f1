#pragma once
/// What runs computed, and the file that keeps it.
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "golden/key.hpp"

namespace checker::golden {

/// What one rank of a run computed.
struct Result {
  std::string parameters;      ///< a hash of the file with its final ones; "none": it saved none
  std::string batches;         ///< a hash of the losses of all its batches
  std::vector<double> losses;  ///< those that it reported, in order

  bool operator==(const Result&) const = default;
};

/// By the name of the run and the rank: "02 fp32 rank 0 of 2".
using Results = std::map<std::string, Result>;

/// What the machines with one key compute.
struct Entry {
  Key key;
  Results results;
};

/// In as few digits as bring its bits back.
std::string shortest(double value);

/// None if the file is not there. Throws Error "file:line: what".
std::vector<Entry> read_entries(const std::filesystem::path& file);

/// The file's text.
std::string text_of(std::span<const Entry> entries);

struct Update {
  std::vector<Entry> entries;
  size_t dropped = 0;  ///< entries of other keys that no longer hold
};

/// The entries with this one instead of its key's. If its results are others than before, or than
/// another key's, what other machines once computed was another program's and is dropped.
Update updated(std::span<const Entry> entries, const Entry& fresh);

}  // namespace checker::golden
