#pragma once
/// Text as numbers, however that is done.
#include <cstdint>
#include <string>
#include <vector>

namespace tasks::summaries {

class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// The numbers of a text, at most `most` - 1 of them, and then <eos>. So no text is empty.
  virtual std::vector<int32_t> encode(const std::string& text, int64_t most) const = 0;

  /// The text that numbers stand for, which has neither <pad> nor <eos>.
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;

  /// How many numbers there are; each is below.
  virtual int64_t size() const = 0;
};

}  // namespace tasks::summaries
