#pragma once
/// What may happen to a file.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace damages {

/// A file after something happened to it; nullopt: it is gone.
struct Damaged {
  std::string what;
  std::optional<std::string> bytes;
};

std::string bytes_of(const std::filesystem::path& file);

/// Replaces what is there, be it a folder.
void write_bytes(const std::filesystem::path& file, const std::string& bytes);

/// One bit is another: in places that matter, and in `more` others.
std::vector<Damaged> flips(const std::string& good, int more);

/// 16 bytes that were never written.
std::vector<Damaged> zeros(const std::string& good);

/// Cut off, or longer than it was.
std::vector<Damaged> other_lengths(const std::string& good);

}  // namespace damages
