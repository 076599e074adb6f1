#pragma once
/// Many small programs in one: compiling a trainer takes seconds, and nearly all of that is spent
/// on headers and templates that all trainers share.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace checker {

/// Whether a program may be compiled together with others. Macros, other namespaces and global
/// variables reach beyond the program, so such a program is compiled alone.
bool fits_a_bundle(const std::string& text);

/// A source file that holds all these programs, each in a namespace of its own. What runs is the
/// program beside whose source it was started: "<folder>/train". It can be a fork server; served is
/// the header process/served.hpp.
std::string bundle_of(std::span<const std::filesystem::path> sources,
                      std::span<const std::string> texts, const std::filesystem::path& served);

}  // namespace checker
