#pragma once
/// Numbers in what a rank printed.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/symptom.hpp"

namespace checker::rules {

/// The number that follows a word in a line, at most a few signs after it; or nothing.
std::optional<double> number_after(const std::string& line, std::string_view word);

/// Whether the number that follows a word is one of these losses, as far as it is printed. One with
/// fewer than two decimals may be any.
bool may_be_one_of(const std::string& line, std::string_view word,
                   const std::vector<double>& losses);

/// The first of these lines that holds what printf() would replace, as "%s" or "%.3f".
std::optional<std::string> unformatted(const std::vector<std::string>& lines);

/// Every number in some lines of text.
std::vector<double> numbers_in(const std::vector<std::string>& lines);

/// Whether losses are wrong, or what they are computed of: then what is printed and which model is
/// the best follow from that.
bool losses_are_in_doubt(const Symptoms& symptoms);

/// How often a loss is among them; three decimals are enough to recognise it.
size_t times_shown(const std::vector<double>& numbers, double wanted);
bool shown(const std::vector<double>& numbers, double wanted);

}  // namespace checker::rules
