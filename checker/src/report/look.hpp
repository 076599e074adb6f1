#pragma once
/// What the reader's terminal can show, and text laid out for it.
#include <string>
#include <string_view>
#include <vector>

#include "judge/verdict.hpp"
#include "terminal/terminal.hpp"

namespace checker {

struct Look {
  size_t width = 100;   ///< columns
  bool unicode = true;  ///< marks beyond ASCII
  int descriptor = 1;   ///< where the text goes; that decides about colour

  std::string styled(terminal::Style style, std::string_view text) const {
    return terminal::styled(style, text, descriptor);
  }
};

/// That of standard output, now. Lines longer than 100 columns are hard to read: none is.
Look present_look();

/// One column: ✓ done, ✗ wrong, ○ open, · not judged; + x o . where the locale has only ASCII.
std::string mark(State state, const Look& look);

/// The columns that a text takes: escape sequences take none, a letter beyond ASCII takes one.
size_t columns(std::string_view text);

/// Without what would move a terminal's cursor or change its colours. For text of a student's
/// program.
std::string printable(std::string_view text);

/// Paragraphs, separated by empty lines, broken between words, each line set in by `indent` blanks.
/// Lines that begin with two blanks are examples and stay as they are.
std::vector<std::string> paragraphs(std::string_view text, size_t indent, const Look& look);

/// One line set in by `indent` blanks; what does not fit is broken, the rest set in by two more.
std::vector<std::string> hanging_line(std::string_view text, size_t indent, const Look& look);

void append(std::vector<std::string>& lines, const std::vector<std::string>& more);

}  // namespace checker
