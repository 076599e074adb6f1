#pragma once
/// Chooses the files of a data set that has one file per year.
#include <string>
#include <vector>

#include "data/sets.hpp"

namespace checker::data {

/// The years of "1990,1993-1995", sorted. Throws UsageError.
std::vector<int> parse_years(const std::string& text);

/// The years in the list of a server's folder, whose links name files such as 1990.h5; sorted.
std::vector<int> years_listed(const std::string& page);

/// The files, as paths under `base`, that go with the chosen years: those years of each split, the
/// first year of a split without a chosen one, and the means and deviations. Asks the server which
/// years a split has. Throws Error for a year that no split has.
std::vector<std::string> files_of_years(const std::string& base, const std::vector<int>& years);

}  // namespace checker::data
