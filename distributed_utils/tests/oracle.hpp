#pragma once
/// Python's torch as the oracle of what this library imitates.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace oracle {

inline constexpr const char* kMissing =
    "no python3 with torch 2.11.0 to compare with; ./workbook test installs one where pip can";

/// Runs tests/oracle/<script> and returns the JSON that it prints; nullopt without such a Python. A
/// script that fails fails the test.
std::optional<nlohmann::json> json(const std::string& script,
                                   const std::vector<std::string>& arguments = {});

}  // namespace oracle
