#pragma once
/// print0 prints on rank 0 only, so that a line appears once instead of once per rank.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

namespace detail {
/// Writes the text and a newline to stdout and flushes, so that a job's log is there while it runs.
bool prints_here();
void print_line(std::string_view text);
}  // namespace detail

/// fmt::println on rank 0 of the world; nothing on other ranks. No collective: a rank may call it
/// alone. Without a process group it prints.
template <typename... Args>
void print0(fmt::format_string<Args...> format, Args&&... args) {
  if (detail::prints_here()) detail::print_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace distributed_utils
