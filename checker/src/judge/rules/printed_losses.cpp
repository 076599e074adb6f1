#include <algorithm>

#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// What a line calls a loss, and the losses that it may then show.
struct Label {
  std::string name;
  std::vector<double> losses;
};

// A longer label stands before the one that it holds.
std::vector<Label> labels_of(const ExpectedWorld& truth) {
  std::vector<Label> labels;
  if (!truth.validation.empty()) {
    labels.push_back({"best validation loss", {*std::ranges::min_element(truth.validation)}});
    labels.push_back({"validation loss", truth.validation});
  }
  if (!truth.training.empty()) labels.push_back({"training loss", truth.training});
  if (truth.test) labels.push_back({"test loss", {*truth.test}});
  return labels;
}

// The first label in a line whose number is not a loss of all ranks. One that is another such loss
// was computed rightly; that it stands in the wrong place is another rule's.
const Label* wrong_label(const std::string& line, const std::vector<Label>& labels,
                         const std::vector<double>& all) {
  for (const auto& label : labels) {
    if (may_be_one_of(line, label.name, label.losses)) continue;
    return may_be_one_of(line, label.name, all) ? nullptr : &label;
  }
  return nullptr;
}

std::string list_of(const std::vector<double>& losses) {
  std::string text;
  for (const double loss : losses) text += (text.empty() ? "" : " or ") + digits(loss);
  return text;
}

}  // namespace

void printed_losses(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::all_reduce) || !context.ended_well()) return;
  if (losses_are_in_doubt(symptoms)) return;
  const auto labels = labels_of(context.truth);
  std::vector<double> all;
  for (const auto& loss : context.truth.losses()) all.push_back(loss.value);
  const size_t speakers = context.expects(feature::print0) ? 1 : context.world();
  for (size_t rank = 0; rank < speakers; ++rank) {
    for (const auto& line : context.run().ranks[rank].output) {
      const auto* label = wrong_label(line, labels, all);
      if (!label) continue;
      symptoms.push_back(
          {.id = "printed_loss_not_global",
           .values = context.values(),
           .evidence = {
               {"printed", {{"rank", rank}, {"line", line.substr(0, 100)}}},
               {"expected", {{"label", label->name}, {"expected", list_of(label->losses)}}}}});
      return;
    }
  }
}

}  // namespace checker::rules
