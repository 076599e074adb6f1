#pragma once
/// The course: chapters, their steps and TODOs, and the sources that students' files, solutions and
/// job scripts are made from. checker/chapters/ holds it; nothing else names a chapter.
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "course/numbers.hpp"
#include "course/source.hpp"
#include "course/words.hpp"

namespace checker {

/// One numbered edit.
struct Todo {
  int number = 0;
  std::string title;                  ///< an order, one line
  std::string done;                   ///< what is so once it is done, one line
  std::string step;                   ///< the step's name
  std::vector<std::string> features;  ///< what is switched on once it is done
  std::vector<int> needs;             ///< TODOs without which it cannot be judged
  int shows_in = 0;                   ///< the TODO at which it shows, where it does nothing alone
  /// The file, or the folder ("model-best/"), of the output folder in which it wants a model: the
  /// "best" or the "final" one. A later TODO may want it elsewhere.
  std::map<std::string, std::string> models;
  std::string while_given;  ///< why it is open while its code is unchanged, whatever runs
  std::string here_too;     ///< what to do at its further places, one line
  std::string text;         ///< what, where, why, what to expect; paragraphs
  std::string hint;
  std::string shape;  ///< a further hint, the shape of the code; may be empty
  std::string explanation;
};

/// A world in which programs are judged.
struct WorldShape {
  std::vector<size_t> nodes;  ///< of each rank
  /// The sizes of the mesh that its ranks form, the innermost dimension first; may be empty.
  std::vector<std::pair<std::string, size_t>> mesh = {};
  /// The nodes of the ranks of a second run, which starts from the model that the first one leaves;
  /// empty: there is none.
  std::vector<size_t> continued = {};

  size_t size() const { return nodes.size(); }
};

enum class ProgramKind {
  trainer,  ///< trains a task; the replay says what it must come to
  plain,    ///< takes arguments, and prints what it should
};

/// Under which conditions a program is judged.
struct Conditions {
  std::vector<WorldShape> worlds;  ///< side by side
  /// Of the task's configuration, beside what the task chooses itself: "epochs", "4".
  std::vector<std::pair<std::string, std::string>> settings = {};
};

/// What a plain program shows under a name must be what `is` says: a kind of rules/results.cpp.
struct ExpectedResult {
  std::string name, is;
  bool on_rank_0 = false;  ///< and on no other rank
};

/// One numbered directory of the course.
struct Step {
  std::string name;     ///< "02_setup"
  std::string chapter;  ///< its chapter's name
  std::string parent;   ///< the step whose solution it starts from; empty: it starts by itself
  std::string title;    ///< one line
  std::string intro;    ///< one paragraph
  std::string run;      ///< the command to try it
  std::vector<int> todos;
  std::vector<std::string> given;  ///< features that its files have ready-made, as do later ones
  std::vector<std::string> files;  ///< the chapter's sources that it is made from
  ProgramKind kind = ProgramKind::trainer;
  /// A judgement draws one of these, or several.
  std::vector<Conditions> conditions = {};
  // Of a plain program:
  std::vector<std::string> arguments = {};  ///< that it is judged with
  /// By world size: the text that each rank prints.
  std::map<size_t, std::vector<std::string>> expected = {};
  std::vector<ExpectedResult> results = {};
  size_t numbers = 0, numbers_a_rank = 0;  ///< that each rank has: so many, and so many a rank
  std::vector<std::string> without = {};   ///< collectives that it must not use
  bool repair =
      false;  ///< the original does something wrong, which is judged and explained as well

  /// An exercise beside the steps: it needs none of them, and none needs it.
  bool is_beside() const { return name.front() >= 'A'; }
  /// What people call it: "02".
  std::string label() const { return name.substr(0, name.find('_')); }
};

enum class FileKind {
  program,  ///< holds main(); a step has exactly one
  part,     ///< another file of the program, which it includes
  job,      ///< the job script
};

/// A source of a chapter, and what it becomes.
struct CourseFile {
  std::string name;  ///< "train.cpp"
  FileKind kind = FileKind::program;
  Source source;
};

/// An entry of a chapter's blame table.
struct Blame {
  std::vector<std::string> features;  ///< whose TODOs may be at fault, the likeliest first
  std::string place;                  ///< "chapter.yaml:12"
};

/// Steps that belong together: one folder of checker/chapters/.
struct Chapter {
  std::string name;
  std::filesystem::path folder;
  std::vector<CourseFile> files;
  std::string task;  ///< what trainers are judged with
  /// Under which trainers are judged, unless a step says otherwise.
  std::vector<Conditions> conditions;
  /// The rules that look at a run, by stage (see judge/rules/table.hpp), and where that is said.
  std::map<std::string, std::vector<std::string>> rules;
  std::string rules_place;
  /// By what was seen: the id of a finding, or a place in the program (phase.training). A chapter
  /// has the entries, and the words, of the chapters that it builds on as well.
  std::map<std::string, Blame> blame;
  Words words;
};

struct Course {
  std::vector<Chapter> chapters;
  std::vector<Step> steps;  ///< of all chapters, in the order of the course
  std::map<int, Todo> todos;

  const Chapter& chapter_of(const Step& step) const;
  /// A step by name or label ("2", "02", "02_setup", "c4"). Throws UsageError naming the steps
  /// there are.
  const Step& step(std::string_view name) const;
  const Step& step_of(const Todo& todo) const { return step(todo.step); }

  /// The sources that a step is made from, the program's first.
  std::vector<const CourseFile*> files_of(const Step& step) const;
  const CourseFile& program_of(const Step& step) const;
  /// Null for a step without a job script.
  const CourseFile* job_of(const Step& step) const;
  /// Those in which a student works: the program's, and the job script if a TODO is done in it.
  std::vector<const CourseFile*> student_files(const Step& step) const;
  /// The source that holds a TODO's places.
  const CourseFile& source_of(const Todo& todo) const;
  /// Whether any of the step's TODOs is done in that file.
  bool edits(const Step& step, const CourseFile& file) const;
  bool edits_job(const Step& step) const;
  /// The step's TODOs that are done in its job script, or in its program's files.
  std::vector<int> todos_of(const Step& step, bool in_job) const;

  /// Where the step's solution leaves its models: see Todo::models.
  std::map<std::string, std::string> models_of(const Step& step) const;

  /// Where a step's file lies, from the project's folder; the student's, or the reference's.
  std::filesystem::path path_of(const Step& step, const CourseFile& file, bool solution) const;
  /// The file in which a student does this TODO.
  std::filesystem::path file_of(const Todo& todo) const;

  /// The TODO that switches a feature on; of several the last, which is where it shows. A blame
  /// table names one of the others by its number, "2". Throws Error if there is none.
  int todo_of(std::string_view feature) const;
};

/// Whether chapters for tests belong to the course; students do not see them.
enum class Chapters { published, with_tests };

/// Reads order.yaml of this folder and the chapters that it names, and checks that all fit
/// together. Throws Error "file:line: what".
Course load_course(const std::filesystem::path& folder, Chapters which = Chapters::published);

}  // namespace checker
