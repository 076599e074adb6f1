#include "report/json.hpp"

#include <nlohmann/json.hpp>

#include "judge/names.hpp"
#include "support/error.hpp"

namespace checker {

using nlohmann::json;

namespace {

json from_finding(const Finding& finding) {
  return {{"todo", finding.todo}, {"id", finding.id},       {"what", finding.what},
          {"why", finding.why},   {"where", finding.where}, {"evidence", finding.evidence}};
}

Finding to_finding(const json& value) {
  return {.todo = value.at("todo").get<int>(),
          .id = value.at("id").get<std::string>(),
          .what = value.at("what").get<std::string>(),
          .why = value.at("why").get<std::string>(),
          .evidence = value.at("evidence").get<std::vector<std::string>>(),
          .where = value.at("where").get<std::string>()};
}

json from_verdict(const Verdict& verdict) {
  json findings = json::array(), notes = json::array();
  for (const auto& finding : verdict.findings) findings.push_back(from_finding(finding));
  for (const auto& note : verdict.notes) notes.push_back(from_finding(note));
  return {{"todo", verdict.todo}, {"state", name_of(verdict.state)}, {"findings", findings},
          {"notes", notes},       {"reason", verdict.reason},        {"untried", verdict.untried}};
}

Verdict to_verdict(const json& value) {
  const auto state = state_named(value.at("state").get<std::string>());
  if (!state) throw Error("A report holds an unknown state.");
  Verdict verdict{.todo = value.at("todo").get<int>(),
                  .state = *state,
                  .findings = {},
                  .reason = value.at("reason").get<std::string>(),
                  .untried = value.at("untried").get<bool>()};
  for (const auto& finding : value.at("findings")) verdict.findings.push_back(to_finding(finding));
  for (const auto& note : value.at("notes")) verdict.notes.push_back(to_finding(note));
  return verdict;
}

json from_timeline(const Timeline& timeline) {
  json ranks = json::array();
  for (const auto& rank : timeline.ranks) {
    auto& spans = ranks.emplace_back(json::array());
    for (const auto& span : rank) {
      spans.push_back(
          {{"begin", span.begin}, {"end", span.end}, {"what", span.what}, {"ended", span.ended}});
    }
  }
  return ranks;
}

Timeline to_timeline(const json& ranks) {
  Timeline timeline;
  for (const auto& rank : ranks) {
    auto& spans = timeline.ranks.emplace_back();
    for (const auto& span : rank) {
      spans.push_back({.begin = span.at("begin").get<double>(),
                       .end = span.at("end").get<double>(),
                       .what = span.at("what").get<std::string>(),
                       .ended = span.at("ended").get<bool>()});
    }
  }
  return timeline;
}

}  // namespace

std::string to_json(const Report& report) {
  json value{{"step", report.step},
             {"solution", report.solution},
             {"verdicts", json::array()},
             {"conditions", report.conditions},
             {"not_checked", report.not_checked},
             {"build_seconds", report.build_seconds},
             {"judge_seconds", report.judge_seconds}};
  for (const auto& verdict : report.verdicts) value["verdicts"].push_back(from_verdict(verdict));
  if (report.compile_error) {
    value["compile_error"] = {
        {"where", report.compile_error->where},   {"message", report.compile_error->message},
        {"source", report.compile_error->source}, {"todo", report.compile_error->todo},
        {"what", report.compile_error->what},     {"fix", report.compile_error->fix}};
  }
  for (const auto& warning : report.warnings) {
    value["warnings"].push_back({{"where", warning.where}, {"message", warning.message}});
  }
  if (report.timeline) value["timeline"] = from_timeline(*report.timeline);
  // A student's program may print bytes that are not text.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Report report_from_json(std::string_view text) try {
  const auto value = json::parse(text);
  Report report;
  report.step = value.at("step").get<std::string>();
  report.solution = value.at("solution").get<bool>();
  for (const auto& verdict : value.at("verdicts")) report.verdicts.push_back(to_verdict(verdict));
  if (const auto error = value.find("compile_error"); error != value.end()) {
    report.compile_error = {.where = error->at("where").get<std::string>(),
                            .message = error->at("message").get<std::string>(),
                            .source = error->at("source").get<std::string>(),
                            .todo = error->value("todo", 0),
                            .what = error->value("what", ""),
                            .fix = error->value("fix", "")};
  }
  for (const auto& warning : value.value("warnings", json::array())) {
    report.warnings.push_back({.where = warning.at("where").get<std::string>(),
                               .message = warning.at("message").get<std::string>()});
  }
  if (const auto timeline = value.find("timeline"); timeline != value.end()) {
    report.timeline = to_timeline(*timeline);
  }
  report.conditions = value.at("conditions").get<std::string>();
  report.not_checked = value.at("not_checked").get<std::vector<std::string>>();
  report.build_seconds = value.at("build_seconds").get<double>();
  report.judge_seconds = value.at("judge_seconds").get<double>();
  return report;
} catch (const json::exception& error) {
  throw Error(std::string("Cannot read a report: ") + error.what() + ".");
}

}  // namespace checker
