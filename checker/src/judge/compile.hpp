#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "judge/verdict.hpp"
#include "support/project.hpp"

namespace checker {

struct Compiled {
  /// The compiler's first error, if there is one; where that lies in a header, the student's line
  /// that led there.
  std::optional<CompileError> error;
  std::vector<CompilerWarning> warnings;  ///< also those of an earlier call, if nothing has changed
};

/// Builds a target quietly. Throws Error if the build fails for another reason than the compiler's
/// errors. on_progress gets "[3/17]".
Compiled compile(const Project& project, const std::string& target,
                 const std::filesystem::path& source,
                 const std::function<void(std::string_view)>& on_progress);

/// The first error in a compiler's output (clang's or GCC's), seen from `source` and the files
/// beside it.
std::optional<CompileError> first_error(const std::vector<std::string>& output,
                                        const std::filesystem::path& source,
                                        const std::string& shown);

/// The step's file that "steps/08_inside_ddp/ddp.hpp:31:5" names; the program's if it is none.
const CourseFile& file_at(const Course& course, const Step& step, const std::string& where);

/// Says what the error means and in which TODO's place it lies, as far as that is known. text: of
/// the file in which the error is.
void explain(CompileError& error, const Course& course, const Step& step, const std::string& text);

}  // namespace checker
