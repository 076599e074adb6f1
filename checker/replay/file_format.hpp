#pragma once
/// The format of a file that a program left, told by its bytes and never by its name.
#include <filesystem>

namespace replay {

/// What judge/oracle.hpp calls them as well:
///
///   "empty"        no bytes
///   "archive"      a zip archive, which torch::save writes
///   "safetensors"  a header, and behind it the bytes of all tensors that the header names
///   "cut"          the begin of such a file
///   "other"        anything else, or nothing that can be read
const char* format_of(const std::filesystem::path& file);

}  // namespace replay
