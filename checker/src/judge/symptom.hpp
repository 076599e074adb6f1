#pragma once
/// What rules see. A symptom says what happened, in values: not whose fault it is, which
/// chapter.yaml says (blame), and not in which words, which findings.yaml has.
#include <string>
#include <utility>
#include <vector>

#include "judge/verdict.hpp"
#include "support/template.hpp"

namespace checker {

/// A line of evidence: its name in findings.yaml, and its values.
struct EvidenceLine {
  std::string name;
  Values values;
};

struct Symptom {
  std::string id;
  Values values = {};  ///< for what and why, and for every line of evidence
  std::vector<EvidenceLine> evidence = {};
  /// Which of the finding's texts, where it has several: "by_node".
  std::string variant = {};
  /// Entries of the blame table, the most likely first; empty: the one named after the id.
  std::vector<std::string> blame = {};
  std::string where = {};  ///< the line of code, or empty
  FindingKind kind = FindingKind::mistake;
  double deviation = 0;  ///< see Finding
};

using Symptoms = std::vector<Symptom>;

/// "rank 0", "ranks 0 and 2", "ranks 0, 1 and 2"; counts them.
Value ranks_value(const std::vector<size_t>& ranks);
/// A number as evidence shows it.
std::string digits(double value);
/// "1271 kB".
std::string kilobytes(double bytes);
/// A phrase of findings.yaml.
Value phrase(std::string name);

}  // namespace checker
