#pragma once
/// The words of verdicts: findings.yaml of all chapters together, and of each. A finding has
///
///   training_left_out:
///     what: one sentence, what the program did
///     why: why that is wrong, and what to look at
///     evidence: {name: a line of what was seen, ...}
///     open: what the run shows, in a few words, of a TODO that is still open; most have none
///
/// Instead of a text, `what` and `why` may have several by variant ({otherwise: ..., by_node:
/// ...}). {name} stands for a value that the rule gives, {name?does:do} for one of two words, by
/// how many things the value names. Further sections hold lines of evidence that several findings
/// share (lines), phrases that values may be (phrases), and what programs say of their own failure:
///
///   messages:
///     - {says: a regular expression, means: a sentence with {1} for what its first brackets hold}
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "support/template.hpp"

namespace checker {

/// What the brackets of a regular expression hold, by their numbers.
Values values_of(const std::smatch& match);

/// The texts of one finding.
struct FindingWords {
  std::map<std::string, Template> what, why;  ///< by variant; "otherwise" is always there
  std::map<std::string, Template> evidence;   ///< by name
  std::optional<Template> open;               ///< beside "open"
  std::string place;                          ///< "findings.yaml:12"
};

class Words {
 public:
  /// Adds the file's texts; those of a chapter come before those of the course. Throws Error
  /// "file:line: what".
  void add(const std::filesystem::path& file);

  /// Adds what these have and we have not.
  void add(const Words& others);

  bool contains(const std::string& id) const { return findings_.contains(id); }
  std::vector<std::string> ids() const;
  /// Throws Error for an id that no file has.
  const FindingWords& of(const std::string& id) const;
  /// A text with its values. place: of the text, for errors.
  std::string fill(const Template& text, Values values, const std::string& place) const;
  /// A line of evidence: one of the finding's own, else of the shared ones. Throws Error if neither
  /// has it.
  std::string line(const FindingWords& finding, const std::string& name,
                   const Values& values) const;
  /// What a program's words mean, by the first entry that fits; nothing if none does.
  std::optional<std::string> meaning_of(const std::string& said) const;

 private:
  struct Message {
    std::regex says;
    Template means;
    std::string place;
  };

  std::map<std::string, FindingWords> findings_;
  std::map<std::string, Template> lines_, phrases_;
  std::vector<Message> messages_;
};

}  // namespace checker
