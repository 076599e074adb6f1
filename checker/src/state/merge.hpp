#pragma once
/// Moves a student's edits from an old text into a new one.
#include <string>

namespace checker {

/// The new text with what was edited in the old one. Words are compared, not lines: a student who
/// replaced one call keeps it also where the line around it is another now. Where both changed the
/// same words, the student's stay. Throws Error if git cannot merge.
std::string merged_by_words(const std::string& edited, const std::string& old_text,
                            const std::string& new_text);

}  // namespace checker
