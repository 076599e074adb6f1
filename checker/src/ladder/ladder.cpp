#include "ladder/ladder.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

std::filesystem::path Ladder::file_of(const Todo& todo) const {
  if (job.todos().contains(todo.number)) {
    return std::filesystem::path("sbatch") / (todo.step + ".sbatch");
  }
  return std::filesystem::path("steps") / todo.step / "train.cpp";
}

int Ladder::todo_of(std::string_view feature) const {
  int found = 0;
  std::vector<std::string> known;
  for (const auto& [number, todo] : todos) {
    if (std::ranges::find(todo.features, feature) != todo.features.end()) found = number;
    known.insert(known.end(), todo.features.begin(), todo.features.end());
  }
  if (found == 0) {
    throw Error("The ladder has no TODO that switches the feature " + std::string(feature) + " on" +
                did_you_mean(feature, known));
  }
  return found;
}

bool Ladder::edits_job(const Step& step) const {
  const auto places = job.todos();
  return std::ranges::any_of(step.todos, [&](int todo) { return places.contains(todo); });
}

const Step& Ladder::step(std::string_view name) const {
  std::string padded(name);
  if (padded.size() == 1) padded.insert(0, "0");
  for (const auto& candidate : steps) {
    if (candidate.name == name || candidate.digits() == padded) return candidate;
  }
  std::vector<std::string> names;
  for (const auto& candidate : steps) names.push_back(candidate.name);
  throw UsageError("There is no step " + std::string(name) + ". The steps are " +
                   join(names, ", ") + ".");
}

}  // namespace checker
