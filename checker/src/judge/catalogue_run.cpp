#include "judge/catalogue_run.hpp"

#include <algorithm>
#include <map>

#include "judge/compile.hpp"
#include "judge/verdicts.hpp"
#include "judge/workshop.hpp"
#include "ladder/render.hpp"

namespace checker {

namespace {

// TODO 1 to 3 are one group: none of them shows itself alone.
int group_of(int todo) { return todo <= 3 ? 3 : todo; }

std::string in_words(const Report& report) {
  std::string text;
  for (const auto& verdict : report.verdicts) {
    for (const auto& finding : verdict.findings) {
      text +=
          (text.empty() ? "" : "; ") + ("TODO " + std::to_string(verdict.todo)) + " " + finding.id;
    }
  }
  return text;
}

bool known_as_given(const Ladder& ladder, const Sample& sample) {
  const auto untouched = untouched_todos(ladder, *sample.step, sample.text);
  return std::ranges::all_of(sample.step->todos, [&](int todo) {
    return untouched.contains(todo) || !ladder.trainer.todos().contains(todo);
  });
}

void hold_against(SampleResult& result, const Ladder& ladder) {
  const auto& report = result.report;
  result.findings = in_words(report);
  const Finding* first = report.first_finding();
  if (result.sample.wanted == Wanted::accepted) {
    result.as_wanted = first == nullptr && report.passed();
    result.blamed_rightly = result.as_wanted;
    if (!result.as_wanted) result.problem = "rejected: " + in_words(report);
    return;
  }
  result.as_wanted = first != nullptr;
  const auto own = [&](int todo) {
    return result.sample.todo == 0  // any of the step's
               ? std::ranges::find(result.sample.step->todos, todo) !=
                     result.sample.step->todos.end()
               : group_of(todo) == group_of(result.sample.todo);
  };
  result.blamed_rightly = first && own(first->todo);
  if (!first) result.problem = "accepted";
  if (result.sample.wanted == Wanted::open && !known_as_given(ladder, result.sample)) {
    result.as_wanted = false;
    result.problem = "not known as given";
  }
  if (first && !result.blamed_rightly) result.problem = "blamed on " + in_words(report);
}

}  // namespace

std::vector<Sample> catalogue_samples(const Ladder& ladder,
                                      const std::vector<CatalogueEntry>& catalogue) {
  std::vector<Sample> samples;
  const auto add = [&](int todo, const std::string& name, const std::string& text, Wanted wanted,
                       const Step& step, bool quick, const std::string& words) {
    samples.push_back({todo, name, text, wanted, &step, quick, words});
  };
  for (const auto& step : ladder.steps) {
    const bool trains = std::ranges::any_of(
        step.todos, [&](int todo) { return ladder.trainer.todos().contains(todo); });
    if (!trains) continue;
    const auto given = render(ladder, ladder.trainer, step, Rendering::step);
    const auto solved = render(ladder, ladder.trainer, step, Rendering::solution);
    add(0, step.name + "_as_given", given, Wanted::open, step, true, "");
    add(0, step.name + "_solution", solved, Wanted::accepted, step, true, "");
    for (const auto& entry : catalogue) {
      if (std::ranges::find(step.todos, entry.todo) == step.todos.end()) continue;
      add(entry.todo, entry.name, apply(entry, solved),
          entry.wrong ? Wanted::rejected : Wanted::accepted, step, entry.quick, entry.words);
    }
  }
  return samples;
}

std::vector<SampleResult> judge_samples(const Project& project, const Ladder& ladder,
                                        const std::vector<Sample>& samples, const CheckOptions& how,
                                        const std::function<void(const SampleResult&)>& on_result) {
  const Workshop workshop(project, how.build);
  std::vector<SampleResult> results;
  // A few at a time, so that something is to be seen soon.
  constexpr size_t kBatch = 4;
  for (size_t from = 0; from < samples.size(); from += kBatch) {
    std::vector<WorkPiece> pieces;
    for (size_t i = from; i < std::min(from + kBatch, samples.size()); ++i) {
      pieces.push_back({samples[i].name, samples[i].text, {}, {}});
    }
    workshop.build(pieces);
    for (size_t i = 0; i < pieces.size(); ++i) {
      SampleResult result;
      result.sample = samples[from + i];
      result.built = !pieces[i].program.empty();
      if (result.built) {
        CheckOptions options;
        options.device = how.device;
        options.program = pieces[i].program.string();
        options.build = false;
        result.report = check_step(project, ladder, *samples[from + i].step, options);
        hold_against(result, ladder);
      } else {
        const auto folder = project.build / "workshop" / pieces[i].name / "train.cpp";
        const auto error = first_error(pieces[i].output, folder, folder.string());
        result.problem = "does not compile: " + (error ? error->message : "see " + folder.string());
      }
      if (on_result) on_result(result);
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace checker
