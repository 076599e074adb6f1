#include "judge/rules/table.hpp"

#include <algorithm>
#include <array>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::rules {

namespace {

constexpr std::array<std::pair<std::string_view, Stage>, 6> kStages{
    {{"place", Stage::place},
     {"work", Stage::work},
     {"numbers", Stage::numbers},
     {"results", Stage::results},
     {"whole", Stage::whole},
     {"continued", Stage::continued}}};

constexpr std::array<Rule, 18> kCommon{{{"membership", &membership},
                                        {"purposes", &purposes},
                                        {"training_shares", &training_shares},
                                        {"evaluation_shares", &evaluation_shares},
                                        {"epochs", &epochs},
                                        {"collectives", &collectives},
                                        {"gradients", &gradients},
                                        {"losses", &losses},
                                        {"printed_losses", &printed_losses},
                                        {"metrics", &metrics},
                                        {"speaking", &speaking},
                                        {"files", &files},
                                        {"saving", &saving},
                                        {"leaving", &leaving},
                                        {"output", &output},
                                        {"shown_results", &shown_results},
                                        {"without", &without},
                                        {"whole", &whole}}};

Stage stage_named(const Chapter& chapter, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& [other, stage] : kStages) {
    if (other == name) return stage;
    known.emplace_back(other);
  }
  throw Error(chapter.rules_place + ": there is no stage " + name + did_you_mean(name, known));
}

Rule rule_named(const Chapter& chapter, const std::string& name) {
  std::vector<std::string> known;
  for (const auto rules : {common_rules(), chapters_rules()}) {
    for (const auto& rule : rules) {
      if (rule.name == name) return rule;
      known.emplace_back(rule.name);
    }
  }
  throw Error(chapter.rules_place + ": there is no rule " + name + did_you_mean(name, known));
}

}  // namespace

std::span<const Rule> common_rules() { return kCommon; }

ChapterRules::ChapterRules(const Chapter& chapter) {
  for (const auto& [stage, names] : chapter.rules) {
    auto& rules = rules_[stage_named(chapter, stage)];
    for (const auto& name : names) rules.push_back(rule_named(chapter, name));
  }
}

void ChapterRules::look(Stage stage, const RunContext& context, Symptoms& symptoms) const {
  const auto found = rules_.find(stage);
  if (found == rules_.end()) return;
  for (const auto& rule : found->second) rule.look(context, symptoms);
}

}  // namespace checker::rules
