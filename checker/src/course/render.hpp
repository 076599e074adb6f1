#pragma once
/// Makes the files of all steps from the course.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"

namespace checker {

enum class Rendering {
  step,      ///< as a student finds it: the full texts of the step's TODOs, nothing done
  solution,  ///< solved, with one line instead of each TODO's text
  student,   ///< solved by a student who leaves the comments as they were
};

/// One line of a rendered file, without its end.
struct RenderedLine {
  std::string text;
  std::string mark{};  ///< what the catalogue calls it; comments have none
};

/// The features that are on in the original step, or solved.
std::set<std::string> features_until(const Course& course, const Step& step, Rendering which);

/// The first step with a job script whose solution has a feature. Throws Error if there is none.
const Step& first_step_with(const Course& course, std::string_view feature);

/// A line of a source with the step's name and program in their places.
std::string substituted(std::string line, const Step& step, Rendering which);

/// The step's file made from one of its chapter's, line by line.
std::vector<RenderedLine> render_lines(const Course& course, const CourseFile& file,
                                       const Step& step, Rendering which);

/// The text of a file's lines. Where blank ones meet, one of them is enough.
std::string text_of(const std::vector<RenderedLine>& lines);

/// The text of the step's file.
std::string render(const Course& course, const CourseFile& file, const Step& step, Rendering which);

/// Everything that is rendered: paths from the project's folder, and texts.
std::map<std::filesystem::path, std::string> render_all(const Course& course);

/// Tells the build which programs there are: a line "02_setup train.cpp" for each step.
constexpr const char* kProgramList = "steps/.programs";

/// A rendered file without what differs between an original step and the solution before it: the
/// header comment and the TODO comments. comment: what begins a comment, "//" or "#".
std::string strip_comments(std::string_view text, std::string_view comment);

/// Throws Error if some original step is not the solution of its parent, TODO and header comments
/// apart: the course's sources are wrong then.
void check_continuity(const Course& course);

}  // namespace checker
