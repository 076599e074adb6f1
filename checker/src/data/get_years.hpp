#pragma once
#include "data/get.hpp"
#include "data/place.hpp"

namespace checker::data {

/// Fetches a set that has a file for each year: the chosen years, and what goes with them. Each
/// file gets its name once it is whole, so a break costs none that are, and more years can follow.
void get_years(const Set& set, const Request& request, Place& place);

}  // namespace checker::data
