#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {

/// Throws Error: "<file>: <what>."
[[noreturn]] inline void fail_at(const std::filesystem::path& file, const std::string& what) {
  throw Error(fmt::format("{}: {}.", file.string(), what));
}

}  // namespace distributed_utils::detail
