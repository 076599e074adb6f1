#pragma once
/// The catalogue: what students do wrong, and other right ways, for each TODO:
/// catalogue/wrong/NN.yaml and catalogue/variants/NN.yaml. The judge never sees it; it is what the
/// judge is tested with.
///
/// An entry edits the solution of its TODO's step. Those in catalogue/unfinished/NN.yaml edit the
/// original step: some TODOs are done, some are not, and `states` says how each must stand. It says
/// where by marks, the names that lines of trainer.cpp and job.sbatch have (course/source.hpp), so
/// that a statement or a comment there can be rewritten and the entry still fits. An edit is one
/// of these:
///
///   {replace: MARK, with: LINES}                 other lines instead of the mark's
///   {remove: MARK}                               nothing in their place
///   {before: MARK, insert: LINES}                further lines above them
///   {after: MARK, insert: LINES}                 and below
///   {in: MARK, change: FRAGMENT, to: FRAGMENT}   a part of them, which must be there once
///
/// MARK may be a list: the same edit at each. TODO comments have no mark: they stay where they are.
/// A mark has one edit that replaces or removes it, or else at most one of each other form.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "course/render.hpp"

namespace checker {

struct Edit {
  enum class Form { replace, remove, before, after, change };

  Form form = Form::replace;
  std::vector<std::string> marks;
  std::string fragment;  ///< of a change
  std::string text;      ///< what takes the fragment's place, or whole lines
  std::string where;     ///< "file:line: the entry's name", for errors
};

enum class EntryKind { wrong, variant, unfinished };

struct CatalogueEntry {
  int todo = 0;  ///< of an unfinished one the TODO to be named first, or any of its step
  EntryKind kind = EntryKind::wrong;
  std::string name;
  std::string words;  ///< of a wrong edit the belief behind it; else why the verdict is right
  std::vector<Edit> edits;
  bool quick = false;   ///< belongs to the few that every test run judges
  std::string where{};  ///< "file:line"
  // Of an unfinished one:
  std::map<int, std::string> states{};  ///< how each TODO must stand: "open", "done", "wrong" ...
  std::string finding{};                ///< the id of the finding to be shown first, or empty
};

/// All entries, by TODO: wrong edits, variants, unfinished ones. Throws Error "file:line: what",
/// also for edits that do not fit the course.
std::vector<CatalogueEntry> load_catalogue(const std::filesystem::path& folder,
                                           const Course& course);

/// All chapters' entries.
std::vector<CatalogueEntry> load_catalogue(const Course& course);

/// The file in which the entry's TODO is done, as the step's solution or as a student has it who
/// keeps the comments.
std::vector<RenderedLine> lines_for(const CatalogueEntry& entry, const Course& course,
                                    Rendering which);

/// The text of such lines with the entry's edits. Throws Error "file:line: what" if one does not
/// fit.
std::string apply_edits(const CatalogueEntry& entry, std::vector<RenderedLine> lines);

}  // namespace checker
