#pragma once
/// Documents and summaries as numbers.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings.hpp"
#include "tasks/task.hpp"
#include "tokenizer.hpp"

namespace tasks::summaries {

/// The samples of one split. Input: documents, int64 [samples, source_length], and what the decoder
/// is told, int64 [samples, target_length]; target: summaries, int64 [samples, target_length]; only
/// words that are not kPad count. With Padding::full every row is as long as any other, whatever
/// batch it is in, so that a sample's bytes are always the same; with Padding::longest rows are as
/// long as the batch needs, which spares a GPU what only pads.
class Pairs : public Dataset::Source {
 public:
  Pairs(int64_t source_length, int64_t target_length, Padding padding = Padding::full)
      : source_length_(source_length), target_length_(target_length), padding_(padding) {}

  /// At most source_length and target_length words.
  void add(const std::vector<int32_t>& document, const std::vector<int32_t>& summary);

  Batch fetch(c10::ArrayRef<size_t> indices) const override;
  size_t size() const override { return ends_.size(); }

  /// How often each of `words` words is in the summaries, double [words].
  torch::Tensor target_counts(int64_t words) const;

 private:
  struct Ends {
    size_t document, summary;
  };
  Ends begin_of(size_t index) const { return index == 0 ? Ends{0, 0} : ends_[index - 1]; }
  // Of the rows of a batch: of documents, and of summaries.
  std::pair<int64_t, int64_t> lengths(c10::ArrayRef<size_t> indices) const;

  int64_t source_length_, target_length_;
  Padding padding_;
  std::vector<int32_t> documents_, summaries_;  // one behind the other
  std::vector<Ends> ends_;                      // of each
};

struct Data {
  std::shared_ptr<const Pairs> train, validation, test;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<double> floor;  ///< the least mean loss, in nats a word, where it is known

  const std::shared_ptr<const Pairs>& split(std::string_view name) const;
};

/// The pairs of the options' folder (see splits.hpp). Without one, those that are built in, which a
/// cache keeps. Throws Error.
Data load_data(const Options& options, const Settings& settings);

/// The mean cross-entropy, in nats a word, of predicting each word of the summaries by its
/// frequency in those of `train` alone; every word counts once more than it is there.
double unigram_cross_entropy(const Pairs& train, const Pairs& pairs, int64_t vocabulary);

}  // namespace tasks::summaries
