// SentencePiece models, whole and damaged.
#include <gmock/gmock.h>
#include <sentencepiece_trainer.h>

#include "../functions.hpp"
#include "damage.hpp"
#include "piece_model.hpp"

namespace tasks::summaries {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kText{
    "The meteorological office has issued a warning of heavy rain.",
    "Rain and wind are expected in the north, the office said.",
    "A warning of wind was lifted on Monday; the rain went on.",
    "The council said that heavy rain had closed twelve roads."};

class Sentences : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return at_ == 20 * kText.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return kText[at_ % kText.size()]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  size_t at_ = 0;
};

std::string train(const std::string& more) {
  Sentences sentences;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--vocab_size=90 --hard_vocab_limit=false --num_threads=1 --minloglevel=2 --bos_id=-1 " +
          more,
      &sentences, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return model;
}

// With T5's numbers. The first has T5's large map of letters as well, the second none.
const std::string& model_as_t5() {
  static const auto model = train("--pad_id=0 --eos_id=1 --unk_id=2");
  return model;
}
const std::string& small_model() {
  static const auto model =
      train("--pad_id=0 --eos_id=1 --unk_id=2 --normalization_rule_name=identity");
  return model;
}

class SentencePieces : public testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> load(const std::string& model) const {
    std::shared_ptr<const Tokenizer> tokenizer;
    worldsize_sentence_pieces(folder_.write("spiece.model", model), tokenizer);
    return tokenizer;
  }
  // Reads it, and texts with it, of other letters and of broken ones.
  std::string error(const std::string& model) const {
    return error_of_bytes(folder_, model, [](const std::filesystem::path& file) {
      std::shared_ptr<const Tokenizer> tokenizer;
      worldsize_sentence_pieces(file, tokenizer);
      for (const auto* text : {"Heavy rain, \xef\xbc\xa1 \xe2\x91\xa0 \xef\xac\x81", "\xff\xc3"}) {
        const auto ids = tokenizer->encode(text, 100);
        EXPECT_THAT(ids, Each(testing::Lt(tokenizer->size())));
        tokenizer->decode({ids.begin(), ids.end()});
      }
    });
  }

  TemporaryFolder folder_;
  std::mt19937_64 random_{3};
};

TEST_F(SentencePieces, GiveTextBack) {
  const auto tokenizer = load(model_as_t5());
  EXPECT_GT(tokenizer->size(), 40);
  for (const auto& text : kText) {
    const auto ids = tokenizer->encode(text, 1000);
    EXPECT_LT(ids.size(), text.size());
    EXPECT_EQ(ids.back(), 1);
    EXPECT_EQ(tokenizer->decode({ids.begin(), ids.end() - 1}), text);
  }
  // Full width letters are others' forms, and a letter that was never seen is <unk>.
  EXPECT_EQ(tokenizer->encode("\xef\xbd\x92\xef\xbd\x81in", 9), tokenizer->encode("rain", 9));
  EXPECT_THAT(tokenizer->encode("\xe6\x9d\xb1", 9), testing::Contains(2));
}

TEST_F(SentencePieces, AreCutAndEnd) {
  const auto tokenizer = load(model_as_t5());
  const auto all = tokenizer->encode(kText[0], 1000);
  const auto cut = tokenizer->encode(kText[0], 4);
  EXPECT_THAT(cut, ElementsAre(all[0], all[1], all[2], 1));
  EXPECT_THAT(tokenizer->encode("", 4), ElementsAre(1));
  // An embedding may have more rows than there are pieces.
  EXPECT_EQ(tokenizer->decode({tokenizer->size() + 5}), tokenizer->decode({2}));
}

TEST_F(SentencePieces, OfOtherNumbersAreRefused) {
  EXPECT_THAT(error(train("--unk_id=0 --eos_id=1 --pad_id=2")),
              HasSubstr("as 2, 1 and 0. Fix: use a model with pad_id=0, eos_id=1 and unk_id=2"));
  EXPECT_THAT(error(train("--unk_id=0 --eos_id=1")), HasSubstr("as -1, 1 and 0"));
}

TEST_F(SentencePieces, OfNoModelAreRefused) {
  EXPECT_THAT(error(""), HasSubstr("no pieces"));
  EXPECT_THAT(error("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("not a complete"));
  std::shared_ptr<const Tokenizer> tokenizer;
  try {
    worldsize_sentence_pieces(folder_.path(), tokenizer);
    FAIL();
  } catch (const std::runtime_error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr(folder_.path()), HasSubstr("Fix: name a")));
  }
}

TEST_F(SentencePieces, ThatAreCutAreAlwaysNamed) {
  const auto& whole = small_model();
  ASSERT_EQ(error(whole), "");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error(whole.substr(0, length)), "") << length << " of " << whole.size();
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(error(model_as_t5().substr(0, random_() % model_as_t5().size())), "");
  }
}

// A piece starts with 0x0a and its length.
TEST_F(SentencePieces, WithAnotherLengthAreAlwaysNamed) {
  const auto& whole = small_model();
  int tried = 0;
  for (size_t at = 0; whole[at] == '\x0a'; at += 2 + static_cast<size_t>(whole[at + 1])) {
    for (int change = 1; change < 8; ++change) {
      auto other = whole;
      other[at + 1] = static_cast<char>(other[at + 1] ^ change);
      EXPECT_NE(error(other), "") << at << " by " << change;
      ++tried;
    }
  }
  EXPECT_GT(tried, 300);
}

TEST_F(SentencePieces, WithoutAPieceOrTheirTrainersWordsAreNamed) {
  const auto& whole = small_model();
  const auto first = 2 + static_cast<size_t>(whole[1]);
  EXPECT_THAT(error(whole.substr(first)), HasSubstr(" pieces of "));
  // Behind the pieces: 0x12, a length of one byte, and what the trainer was told.
  size_t at = 0;
  while (whole[at] == '\x0a') at += 2 + static_cast<size_t>(whole[at + 1]);
  ASSERT_EQ(whole[at], '\x12');
  const auto length = static_cast<size_t>(whole[at + 1]);
  EXPECT_THAT(error(whole.substr(0, at) + whole.substr(at + 2 + length)), HasSubstr("too early"));
}

TEST_F(SentencePieces, WithADamagedMapAreAlwaysNamed) {
  const auto& whole = model_as_t5();
  for (int i = 0; i < 100; ++i) {
    auto other = whole;
    const auto from = 10'000 + random_() % 100'000;
    for (size_t at = from; at < from + 400; ++at) other[at] = static_cast<char>(random_());
    EXPECT_THAT(error(other), HasSubstr("map of letters")) << from;
  }
}

TEST_F(SentencePieces, ThatAreDamagedAreReadOrNamed) {
  int refused = 0;
  for (int i = 0; i < 1200; ++i) {
    const auto& whole = i % 8 == 0 ? model_as_t5() : small_model();
    const auto reach = i % 16 == 0 ? size_t{3000} : whole.size();
    if (!error(damaged(whole, random_, 0, reach)).empty()) ++refused;
  }
  EXPECT_GT(refused, 300);
  EXPECT_EQ(error(small_model()), "");
}

}  // namespace
}  // namespace tasks::summaries
