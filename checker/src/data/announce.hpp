#pragma once
/// Tells the user how large a download is, and asks, before anything is fetched.
#include <cstdint>
#include <string>

#include "data/get.hpp"
#include "data/place.hpp"

namespace checker::data {

struct Amount {
  uintmax_t all = 0;     ///< bytes of the files to fetch
  uintmax_t here = 0;    ///< of these, from earlier tries
  uintmax_t beside = 0;  ///< bytes that unpacking takes
  std::string from;      ///< where they come from

  uintmax_t to_fetch() const { return all - here; }
};

/// Says how much is fetched, from where and to where. Throws Error if the disk has no room for it,
/// and if more than 1 GB is not confirmed: by --yes, or by somebody at a terminal.
void announce(const Set& set, const Request& request, const Amount& amount, const Place& place);

}  // namespace checker::data
