#pragma once
/// Downloads one file of a data set and checks it.
#include <filesystem>
#include <string>

#include "data/curl.hpp"

namespace checker::data {

struct Wanted {
  std::string address;
  std::filesystem::path file;  ///< while it is not whole it has the ending .part
  std::string shown;           ///< how people call it
  std::string known_sha256;    ///< what it must be; empty if nobody knows
  std::string known_from;      ///< who says so: "FastAI.jl publishes"
  std::string otherwise;       ///< the fix if it is another file and shall be taken all the same
};

/// How much of the file has come in earlier tries. What came of another version counts for nothing.
uintmax_t bytes_here(const Wanted& wanted, const Remote& remote);

/// Throws Error if the file, which is whole, has another hash than it must have.
void expect_known(const Wanted& wanted);

/// Fetches what is missing, shows how it goes, and compares size and hash. The file is there,
/// whole, afterwards. Returns its SHA-256. Throws Error; what has come is kept, and the next call
/// goes on.
std::string download(const Wanted& wanted, const Remote& remote);

}  // namespace checker::data
