#pragma once
/// Which rules look at a run, and when. A chapter names them by stage in chapter.yaml; it may have
/// rules of its own beside those of judge/rules: a file rules/X.cpp in its folder that defines
/// checker::rules::X.
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

/// In this order: what comes first explains what comes later.
enum class Stage {
  place,      ///< the ranks and what they work on
  work,       ///< what each rank does; only where nothing was seen before
  numbers,    ///< what comes of it; then it is asked what a run died of, or waits for
  results,    ///< what is reported and left behind; only of a run that ended well
  whole,      ///< whether all was done; only where nothing but beginnings is missing
  continued,  ///< a second run, which starts from the model that this one saved
};

struct Rule {
  std::string_view name;
  void (*look)(const RunContext& context, Symptoms& symptoms);
};

/// Those that any chapter may name, and those of chapters (made by CMake).
std::span<const Rule> common_rules();
std::span<const Rule> chapters_rules();

class ChapterRules {
 public:
  /// Throws Error with file and line for a stage or a rule that there is not.
  explicit ChapterRules(const Chapter& chapter);
  void look(Stage stage, const RunContext& context, Symptoms& symptoms) const;

 private:
  std::map<Stage, std::vector<Rule>> rules_;
};

}  // namespace checker::rules
