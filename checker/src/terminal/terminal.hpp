#pragma once
/// What the checker says to people: colour and lines drawn over only on terminals.
#include <chrono>
#include <string>
#include <string_view>

namespace checker::terminal {

/// Columns of the terminal on standard output; 100 if it is none.
size_t width();

enum class Style { plain, bold, dim, red, green, yellow };

/// The text in this style if the descriptor gets colour, else as it is.
std::string styled(Style style, std::string_view text, int descriptor = 1);

/// One line on standard output, written at once.
void say(std::string_view line);
/// "error: ..." on standard error.
void complain(std::string_view message);

/// One calm line per stage of work: what, and how long it took. On a terminal the line shows while
/// the work lasts, with a note beside it; elsewhere it appears when the work is done.
class Stage {
 public:
  explicit Stage(std::string title);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// What is going on just now, "[12/80]".
  void note(std::string_view text);
  void done();
  /// There was nothing to do: leaves no line.
  void idle();
  /// Ends the line; what went wrong is for the caller to say.
  void failed();

 private:
  void end(Style style, std::string_view mark);
  double seconds() const;

  std::string title_;
  bool draws_;
  bool ended_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace checker::terminal
