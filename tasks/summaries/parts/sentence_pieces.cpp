// Text as SentencePiece's numbers: see parts.hpp.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "functions.hpp"
#include "piece_model.hpp"

namespace tasks::summaries {
namespace {

// T5's, and the model's: transformer.hpp, which is torch's, says the same.
constexpr int kPad = 0, kEnd = 1, kUnknown = 2;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what,
                       const std::string& fix) {
  throw std::runtime_error(file.string() + ": " + what + ". Fix: " + fix + ".");
}

class SentencePieces : public Tokenizer {
 public:
  explicit SentencePieces(const std::filesystem::path& file) {
    if (!std::filesystem::is_regular_file(file)) {
      fail(file, "is not a file", "name a SentencePiece model, such as t5-base's spiece.model");
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});
    if (const auto wrong = what_is_wrong(bytes); !wrong.empty()) {
      fail(file, "is not a complete SentencePiece model: " + wrong, "copy the file again");
    }
    if (const auto why = load(bytes); !why.empty()) {
      fail(file, "was rejected by SentencePiece (" + why + ")", "copy the file again");
    }
    if (pieces_.pad_id() != kPad || pieces_.eos_id() != kEnd || pieces_.unk_id() != kUnknown) {
      fail(file,
           "numbers <pad>, <eos> and <unk> as " + std::to_string(pieces_.pad_id()) + ", " +
               std::to_string(pieces_.eos_id()) + " and " + std::to_string(pieces_.unk_id()),
           "use a model with pad_id=0, eos_id=1 and unk_id=2, like T5's");
    }
  }

  std::vector<int32_t> encode(const std::string& text, int64_t most) const override {
    std::vector<int> ids;
    check(pieces_.Encode(text, &ids));
    ids.resize(std::min(ids.size(), static_cast<size_t>(most - 1)));
    ids.push_back(kEnd);
    return {ids.begin(), ids.end()};
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    std::vector<int> known;
    // A model's embedding may have more rows than there are pieces.
    for (const auto id : ids) known.push_back(id < size() ? static_cast<int>(id) : kUnknown);
    check(pieces_.Decode(known, &text));
    return text;
  }

  int64_t size() const override { return pieces_.GetPieceSize(); }

 private:
  // Why not; empty if it is loaded.
  std::string load(const std::string& bytes) {
    try {
      const auto status = pieces_.LoadFromSerializedProto(bytes);
      return status.ok() ? "" : status.ToString();
    } catch (const std::exception& error) {  // a library below it throws, of a damaged file
      return error.what();
    }
  }

  static void check(const sentencepiece::util::Status& status) {
    if (!status.ok()) throw std::runtime_error("SentencePiece: " + status.ToString());
  }

  sentencepiece::SentencePieceProcessor pieces_;
};

}  // namespace
}  // namespace tasks::summaries

void worldsize_sentence_pieces(const std::filesystem::path& file,
                               std::shared_ptr<const tasks::summaries::Tokenizer>& tokenizer) {
  tokenizer = std::make_shared<tasks::summaries::SentencePieces>(file);
}
