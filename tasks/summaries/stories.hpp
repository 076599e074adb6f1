#pragma once
/// Made-up documents whose summaries are known but for a few free choices, so that the least mean
/// loss is known as well: no model's expected loss is below the entropy of these choices.
///
/// A document has four or five sentences, "determiner [adjective] noun verb determiner noun .", all
/// about one of four topics. One of them is salient, and its subject, the hero, is the summary's:
/// "determiner hero verb determiner object". Free in the summary are both determiners, and whether
/// the verb is the document's or its synonym; the document decides everything else.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "json_lines.hpp"
#include "language_model/corpus/table.hpp"

namespace tasks::summaries {

/// Which sentence is salient.
enum class Salience {
  lead,  ///< the first
  count  ///< the second of the only two that have the same subject
};

class Stories {
 public:
  explicit Stories(Salience salience);

  Pair draw(corpus::Bits& bits) const;

  /// Of the summary's choices, in nats per word, its end counted as one.
  double entropy_per_word() const;
  /// Every word that there is.
  std::vector<std::string> words() const;

  /// The free choices: which determiner (of "ta", "to"), and whether the verb is a synonym.
  const corpus::Table& determiner() const { return determiner_; }
  const corpus::Table& synonym() const { return synonym_; }

 private:
  struct Event {
    int subject, verb, object;
  };
  /// Who is each sentence's subject, by places in a cast of four; 0 is the hero.
  std::vector<int> subjects(corpus::Bits& bits) const;
  std::string sentence(int topic, const Event& event, corpus::Bits& bits) const;
  std::string summary(int topic, const Event& event, corpus::Bits& bits) const;

  Salience salience_;
  corpus::Table determiner_, synonym_;
};

/// Writes so many drawn pairs as JSON lines, the same for the same seed on every machine. Throws
/// Error if it cannot.
void write_stories(const Stories& stories, uint64_t seed, int64_t count,
                   const std::filesystem::path& file);

}  // namespace tasks::summaries
