#pragma once
/// Small helpers for text.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

/// The lines of a text without their ends; a last line may lack its end.
std::vector<std::string> split_lines(std::string_view text);

/// What stands between the separators; nothing after a last one.
std::vector<std::string> split(std::string_view text, char separator);

/// Without blanks, tabs and line ends on both sides.
std::string_view trim(std::string_view text);
/// At most so many characters of it: whole sentences if it has any, else whole words and " ...".
std::string whole_sentences(std::string_view text, size_t at_most);

std::string join(std::span<const std::string> parts, std::string_view separator);

/// The text with every `part` of it, which must not be empty, replaced by `other`.
std::string replaced(std::string text, std::string_view part, std::string_view other);

/// Breaks a paragraph between words into lines of at most `width` bytes; a longer word stands
/// alone.
std::vector<std::string> wrap(std::string_view paragraph, size_t width);

/// The candidate that `word` was probably meant to be: fewest insertions, deletions, changes and
/// swaps of neighbours. Empty if none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// ", did you mean <nearest>?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// Quoted so that a POSIX shell reads exactly `text` back, as one word.
std::string shell_quote(std::string_view text);

/// The number a text begins with; `otherwise` if it begins with none.
int whole_number(std::string_view text, int otherwise);

/// FNV-1a, 64 bits, in 16 hexadecimal digits: tells a changed file, does not resist an attacker.
std::string fingerprint(std::string_view text);

/// "0.8 s", "12.3 s", "2 min 05 s".
std::string format_seconds(double seconds);

/// "1 step", "3 steps".
std::string count_of(size_t count, std::string_view noun);

/// With so many digits behind the point, and no exponent: "1.905".
std::string fixed(double value, int digits);

}  // namespace checker
