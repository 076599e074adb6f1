#include "verbs/every_word.hpp"

#include "judge/names.hpp"
#include "support/error.hpp"

namespace checker {

EveryWord::EveryWord(const std::string& file) : file_(file) {
  if (!file_) throw Error("Cannot write " + file + ".");
}

void EveryWord::add(const SampleResult& result) {
  file_ << "== " << result.sample.title() << "\n";
  for (const auto& verdict : result.verdicts) {
    file_ << name_of_todo(verdict.todo) << " " << name_of(verdict.state)
          << (verdict.reason.empty() ? "" : ": " + verdict.reason) << "\n";
    for (const auto& finding : verdict.findings) {
      file_ << "  " << finding.id << (finding.kind == FindingKind::crash ? " (crash)" : "")
            << (finding.kind == FindingKind::not_started ? " (not started)" : "") << "\n    "
            << finding.what << "\n    " << finding.why << "\n";
      for (const auto& line : finding.evidence) file_ << "    - " << line << "\n";
    }
    for (const auto& note : verdict.notes)
      file_ << "  " << note.id << " (note)\n    " << note.what << "\n    " << note.why << "\n";
  }
  file_.flush();
}

}  // namespace checker
