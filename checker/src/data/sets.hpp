#pragma once
/// The data sets that ./workbook data fetches, and where they are published.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace checker::data {

/// A file as its publisher has it.
struct Source {
  std::string base, name;       ///< of its address: <base>/<name>
  std::string sha256;           ///< published by others who use it; empty if nobody does
  std::string publisher_of_it;  ///< who says so
};

struct Set {
  std::string name;     ///< as on the command line
  std::string about;    ///< what it is
  std::string size;     ///< how much is to be fetched, in words
  std::string terms;    ///< whose it is
  std::string options;  ///< of the trainer that reads it, but for --data
  std::vector<Source> sources;
  /// What is made of the sources takes so many times their size. 0: they are the data themselves.
  double growth = 0;
  bool has_years = false;  ///< the user chooses among files of single years
};

std::span<const Set> sets();

/// Throws UsageError, with the nearest name, if there is none of this name.
const Set& find_set(const std::string& name);

/// Makes a set's files in an empty folder, out of its fetched sources. Throws Error for archives
/// that are damaged or reach outside the folder, and if the disk is full.
void fill(const Set& set, const std::filesystem::path& sources, const std::filesystem::path& into);

}  // namespace checker::data
