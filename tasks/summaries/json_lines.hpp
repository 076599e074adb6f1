#pragma once
/// Documents and their summaries as XSum comes (Narayan et al. 2018,
/// https://arxiv.org/abs/1808.08745): JSON lines (https://jsonlines.org), one object a line with
/// the strings "document" and "summary". Others, such as its "id", are left alone.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace tasks::summaries {

struct Pair {
  std::string document, summary;
};

/// Of a line, in bytes: what is longer is not a line of text.
constexpr size_t kLongestLine = size_t{16} << 20;

/// Calls take() with what each line of the file says, in order, and never holds more than one line.
/// Throws Error that names file and line, for whatever is not such an object: cut JSON, a field
/// that is missing, twice there or no string, bytes that are not UTF-8, a blank line, one that is
/// too long; and for a file that is missing, unreadable or empty. A last line may lack its end.
void for_each_pair(const std::filesystem::path& file,
                   const std::function<void(const Pair& pair)>& take);

/// Writes one line.
std::string to_json_line(const Pair& pair, const std::string& id);

}  // namespace tasks::summaries
