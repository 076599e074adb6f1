#include "judge/rules/rules.hpp"
#include "support/text.hpp"

namespace checker::rules {

namespace {

constexpr size_t kShown = 100;  // letters of a line

// Line by line, the first that differs.
std::optional<EvidenceLine> first_difference(size_t rank, const std::vector<std::string>& expected,
                                             const std::vector<std::string>& printed) {
  for (size_t i = 0; i < std::max(expected.size(), printed.size()); ++i) {
    const bool missing = i >= printed.size(), more = i >= expected.size();
    if (!missing && !more && trim(printed[i]) == trim(expected[i])) continue;
    Values values{{"rank", rank}, {"line", i + 1}};
    if (!more) values["expected"] = expected[i].substr(0, kShown);
    if (!missing) values["got"] = printed[i].substr(0, kShown);
    return EvidenceLine{missing ? "line_missing" : more ? "line_more" : "line_differs", values};
  }
  return std::nullopt;
}

}  // namespace

void output(const RunContext& context, Symptoms& symptoms) {
  const auto expected = context.step.expected.find(context.world());
  if (expected == context.step.expected.end()) return;
  Symptom symptom{.id = "output_differs", .values = context.values()};
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    auto line = first_difference(rank, split_lines(expected->second[rank]), seen.output);
    if (line) symptom.evidence.push_back(std::move(*line));
  }
  if (!symptom.evidence.empty()) symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
