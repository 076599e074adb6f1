#pragma once
/// A folder of text in WikiText's layout (Merity et al. 2016, https://arxiv.org/abs/1609.07843):
/// words separated by blanks, one paragraph a line.
#include <filesystem>
#include <string>
#include <vector>

namespace tasks::language_model {

/// A word that stands for all that the vocabulary does not have, and one that ends every line.
inline constexpr const char* unknown_word = "<unk>";
inline constexpr const char* end_of_line = "<eos>";

struct Text {
  std::vector<std::string> train, validation, test;
};

/// The words of one file, ASCII letters lower-cased, with <eos> after every line. Throws Error for
/// a file that is missing, empty, no UTF-8 text or cut off.
std::vector<std::string> read_words(const std::filesystem::path& file);

/// The three splits of a folder: wiki.{train,valid,test}.tokens or {train,valid,test}.txt. Throws
/// Error, also for a folder that has neither.
Text read_text(const std::filesystem::path& folder);

}  // namespace tasks::language_model
