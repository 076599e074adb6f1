#pragma once
/// A master source, from which the files of all steps are made. It is read line by line:
///
///   #if FEATURE, #if !FEATURE, #else, #endif   choose lines, as the C preprocessor does
///   //@todo 4   (#@todo 4 in a job script)     the place of a TODO, on a line of its own
///   //@header   (#@header)                     the place of the comment on top, once
///   code  //@train.step   (code  #@nodes)      a mark: what the catalogue calls this line
///
/// Everything else is text. Other lines that begin with # (#include, #SBATCH) are text as well.
///
/// A mark stands two blanks after the code, at the end of the line: small letters, digits, _ and .
/// It is not part of the text. Where a statement takes several lines, all of them have its mark.
/// Both branches of an #if may have the same one.
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

/// One line after the choice of features: text, or the place of a TODO or of the header.
struct PlacedLine {
  std::string text;     ///< of a place: the blanks before it
  int todo = 0;         ///< the TODO whose place this is; 0: text
  bool header = false;  ///< the header's place
  int number = 0;       ///< of the line in the source
  std::string mark{};   ///< the line's, if it has one
};

class Source {
 public:
  /// file: its name in errors. comment: what begins a comment, "//" or "#".
  /// Throws Error "file:line: what" for directives that do not match.
  Source(std::string file, std::string comment, std::string_view text);

  const std::string& file() const { return file_; }
  const std::string& comment() const { return comment_; }
  /// Every feature that an #if names.
  std::set<std::string> features() const;
  /// Every TODO that has a place here.
  std::set<int> todos() const;
  /// How many places a TODO has here.
  size_t places(int todo) const;
  /// Every mark.
  std::set<std::string> marks() const;
  /// "file:line" of the first #if of a feature, or the first place of a TODO.
  std::string where(const std::string& feature) const;
  std::string where(int todo) const;

  /// The lines that remain with these features on and all others off. Throws Error "file:line:
  /// what" if a mark is then on lines that do not follow each other.
  std::vector<PlacedLine> select(const std::set<std::string>& features) const;

 private:
  enum class Kind { text, if_on, if_off, else_, endif, todo, header };
  struct Line {
    Kind kind;
    std::string text;  ///< of #if: the feature
    int todo;
    int number;
    std::string mark{};
  };

  Line parse(const std::string& text, int number) const;
  Line parse_unmarked(const std::string& text, int number) const;
  void validate() const;
  void check_marks(const std::vector<const Line*>& chosen) const;
  std::string at(int number) const;

  std::string file_;
  std::string comment_;
  std::vector<Line> lines_;
};

}  // namespace checker
