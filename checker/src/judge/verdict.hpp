#pragma once
/// What the judge says. One report is made in memory; terminal, watch and later JSON, CSV, JUnit
/// and HTML render it.
#include <optional>
#include <string>
#include <vector>

namespace checker {

enum class State {
  open,        ///< not started
  done,        ///< judged and right
  wrong,       ///< judged and not right: there is at least one finding
  not_judged,  ///< waits for another TODO, or could not be tried here
};

/// What a finding says about the work on its TODO.
enum class FindingKind {
  mistake,      ///< the program does something that is not right
  not_started,  ///< the program does what the exercise does before this TODO, and nothing else
  crash,        ///< a rank died, hung or never ended
  note,         ///< the program does something that a teacher may allow: nothing is wrong with it
  consequence,  ///< it may follow from another finding; the TODO cannot be judged before that
};

/// One reason why a TODO is wrong.
struct Finding {
  int todo = 0;
  std::string id;    ///< "every_rank_prints": the kind of finding, for catalogues and statistics
  std::string what;  ///< what the program did, in a sentence that a student understands
  std::string why;   ///< why that is wrong and what to look at, in the course's words
  std::vector<std::string> evidence;  ///< what was seen, a line each, with numbers
  std::string where;  ///< "steps/05_all_reduce_loss/train.cpp:48", or empty if no line can be named
  FindingKind kind = FindingKind::mistake;
  std::string open = {};  ///< what it shows of a TODO that is still open, in a few words; or empty
  /// Where a number decided: by how much it is off, relative. 0: none did.
  double deviation = 0;
};

/// The judgement of one TODO.
struct Verdict {
  int todo = 0;
  State state = State::not_judged;
  std::vector<Finding> findings;
  std::string reason;    ///< of not_judged: "waits for TODO 5"; of open: what shows it, or empty
  bool untried = false;  ///< not_judged, because it could not be tried here
  std::vector<Finding> notes{};  ///< what a teacher decides
};

/// The compiler's first error, at the student's line.
struct CompileError {
  std::string where;    ///< "steps/02_setup/train.cpp:31:5"
  std::string message;  ///< the compiler's own words
  std::string source;   ///< the line itself and the mark under it, as the compiler shows them
  std::vector<std::string> notes = {};  ///< what the compiler adds to it
  // What explain() finds out.
  int todo = 0;           ///< where it is to be fixed; 0: nobody knows
  std::string what = {};  ///< what it means; empty: nobody knows
  std::string fix = {};   ///< what to do
};

/// What the compiler warns of, at the student's line.
struct CompilerWarning {
  std::string where;    ///< "steps/08_inside_ddp/ddp.hpp:31:5"
  std::string message;  ///< the compiler's own words

  bool operator==(const CompilerWarning&) const = default;
};

/// What a rank did for a while, in seconds since the first rank began to record.
struct Span {
  double begin = 0, end = 0;
  std::string what;  ///< "all_reduce of 2 float64 (SUM)"
  bool ended = true;
};

/// What the ranks of a run did when, rank by rank.
struct Timeline {
  std::vector<std::vector<Span>> ranks;
};

/// The judgement of one step's program.
struct Report {
  std::string step;               ///< "05_all_reduce_loss"
  bool solution = false;          ///< the reference was judged, not the student's file
  std::vector<Verdict> verdicts;  ///< of the step's own TODOs, in order; then of earlier ones that
                                  ///< this program no longer fulfils
  std::optional<CompileError> compile_error;
  std::vector<CompilerWarning> warnings;  ///< about the student's files
  std::string conditions;                 ///< of the run that was judged: "--epochs 4, dropout 0.2"
  std::vector<std::string> not_checked;   ///< "NCCL: there is no GPU here", a line each
  /// The largest relative deviation of a gradient, a parameter or a loss from what the replay
  /// gives, of all that rules look at.
  double largest_deviation = 0;
  std::optional<Timeline> timeline;  ///< of a run that shows what is wrong
  double build_seconds = 0;
  double judge_seconds = 0;

  bool passed() const;  ///< no compile error, every verdict done
  /// The first finding to fix, or null.
  const Finding* first_finding() const;
};

}  // namespace checker
