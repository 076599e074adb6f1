#pragma once
/// The screen of ./workbook watch.
#include <optional>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "judge/verdict.hpp"
#include "report/look.hpp"
#include "state/standing.hpp"

namespace checker {

enum class Pane { verdict, hint, shape, explanation, solution };

/// What is known just now, and which part of it is to be seen.
struct View {
  const Step* step = nullptr;
  Standings standings;           ///< what is known before there is a report
  std::optional<Report> report;  ///< the last one on this step
  std::string error;             ///< why there is none
  bool outdated = false;         ///< the report is of an older text
  bool judging = false;
  std::string stage;   ///< what the judge is doing
  std::string remark;  ///< what else there is to say, in a line
  Pane pane = Pane::verdict;
  size_t page = 0;  ///< of the pane, where it is longer than the screen
};

/// The TODO in hand: the first that is wrong or open, else the step's first.
const Todo& todo_in_hand(const View& view, const Course& course);

/// One sentence on the report: "TODO 5 is wrong; 2 of 4 are done."
std::string summary(const Report& report, const Step& step);

/// The whole page, at most `rows` lines.
std::vector<std::string> page_lines(const View& view, const Project& project, const Course& course,
                                    const Look& look, size_t rows);

}  // namespace checker
