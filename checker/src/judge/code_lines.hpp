#pragma once
/// Splits a source into its lines of code, without comments and layout.
#include <string>
#include <string_view>
#include <vector>

namespace checker {

/// Lines, and their numbers in the file that they come from.
struct NumberedLines {
  std::vector<std::string> texts;
  std::vector<int> numbers;
};

/// Without comments, which `comment` ("//" or "#") begins, empty lines and blanks on both sides.
NumberedLines code_of(std::string_view text, const std::string& comment);

}  // namespace checker
