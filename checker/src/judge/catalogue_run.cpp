#include "judge/catalogue_run.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "judge/compile.hpp"
#include "judge/given.hpp"
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
  const auto& source = sample.job ? ladder.job : ladder.trainer;
  const auto untouched = untouched_todos(ladder, source, *sample.step, sample.text);
  return std::ranges::all_of(sample.step->todos, [&](int todo) {
    return untouched.contains(todo) || !source.todos().contains(todo);
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

// Job scripts start the solution's trainer, one for all.
std::string piece_name(const Sample& sample) {
  return sample.job ? sample.step->name + "_trainer" : sample.name;
}

std::vector<WorkPiece> pieces_of(const Ladder& ladder, std::span<const Sample> samples) {
  std::vector<WorkPiece> pieces;
  for (const auto& sample : samples) {
    const auto name = piece_name(sample);
    if (std::ranges::find(pieces, name, &WorkPiece::name) != pieces.end()) continue;
    const auto text = sample.job ? render(ladder, ladder.trainer, *sample.step, Rendering::solution)
                                 : sample.text;
    pieces.push_back({name, text, {}, {}});
  }
  return pieces;
}

}  // namespace

std::vector<Sample> catalogue_samples(const Ladder& ladder,
                                      const std::vector<CatalogueEntry>& catalogue) {
  std::vector<Sample> samples;
  const auto add = [&](const Step& step, bool job) {
    const auto& source = job ? ladder.job : ladder.trainer;
    const auto here = [&](int todo) { return source.todos().contains(todo); };
    if (std::ranges::none_of(step.todos, here)) return;
    const auto solved = render_lines(ladder, source, step, Rendering::solution);
    samples.push_back({.name = step.name + "_as_given",
                       .text = render(ladder, source, step, Rendering::step),
                       .wanted = Wanted::open,
                       .step = &step,
                       .quick = true,
                       .job = job});
    samples.push_back({.name = step.name + "_solution",
                       .text = text_of(solved),
                       .wanted = Wanted::accepted,
                       .step = &step,
                       .quick = true,
                       .job = job});
    for (const auto& entry : catalogue) {
      const bool own = std::ranges::find(step.todos, entry.todo) != step.todos.end();
      if (!own || !here(entry.todo)) continue;
      samples.push_back({.todo = entry.todo,
                         .name = entry.name,
                         .text = apply_edits(entry, solved),
                         .wanted = entry.wrong ? Wanted::rejected : Wanted::accepted,
                         .step = &step,
                         .quick = entry.quick,
                         .job = job,
                         .words = entry.words});
    }
  };
  for (const auto& step : ladder.steps) {
    add(step, /*job=*/false);
    add(step, /*job=*/true);
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
    const auto batch = std::span(samples).subspan(from, std::min(kBatch, samples.size() - from));
    auto pieces = pieces_of(ladder, batch);
    workshop.build(pieces);
    for (const auto& sample : batch) {
      const auto piece = std::ranges::find(pieces, piece_name(sample), &WorkPiece::name);
      SampleResult result{.sample = sample, .built = !piece->program.empty()};
      if (result.built) {
        CheckOptions options;
        options.device = how.device;
        options.program = piece->program.string();
        if (sample.job) options.job_script = sample.text;
        options.build = false;
        result.report = check_step(project, ladder, *sample.step, options);
        hold_against(result, ladder);
      } else {
        const auto source = project.build / "workshop" / piece->name / "train.cpp";
        const auto error = first_error(piece->output, source, source.string());
        result.problem = "does not compile: " + (error ? error->message : "see " + source.string());
      }
      if (on_result) on_result(result);
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace checker
