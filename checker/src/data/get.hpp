#pragma once
/// Fetches a data set, and checks later whether it is still complete.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/sets.hpp"

namespace checker::data {

struct Request {
  std::filesystem::path folder;
  std::string from;        ///< instead of the sources' bases; empty: those
  std::vector<int> years;  ///< of a set that has years
  bool yes = false;        ///< large downloads need not be confirmed
  bool trust = false;      ///< published hashes need not be met
};

/// The set's folder where nobody names one.
std::filesystem::path usual_folder(const Set& set);

/// Fetches what is missing into the folder and says what it does. Says how much it is first, and
/// asks if that is above 1 GB. Throws Error, and the next call goes on where this one ended.
void get(const Set& set, const Request& request);

/// Holds all files against the manifest and names those that are damaged or missing. False if there
/// are any. Throws Error if there is no manifest.
bool verify(const Set& set, const std::filesystem::path& folder);

/// The command that trains on a set.
std::string training_command(const Set& set, const std::filesystem::path& folder);

}  // namespace checker::data
