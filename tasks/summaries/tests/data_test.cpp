// From files to batches.
#include "data.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "errors.hpp"
#include "json_lines.hpp"
#include "temporary_folder.hpp"
#include "transformer.hpp"
#include "words.hpp"

namespace tasks::summaries {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Words, AreSplitAtBlanksAndMarks) {
  EXPECT_THAT(words_of("  The 1,099 dogs' \"don't\"\tcare\n(Über-Hund)..."),
              ElementsAre("the", "1,099", "dogs", "'", "\"", "don't", "\"", "care", "(",
                          "Über-hund", ")", ".", ".", "."));
  EXPECT_TRUE(words_of(" \n").empty());
  EXPECT_THAT(words_of("<pad>"), ElementsAre("<", "pad", ">"));  // no text says what ids mean
}

TEST(Vocabulary, HasTheMostFrequentWords) {
  const Vocabulary vocabulary({{"b", 2}, {"a", 2}, {"c", 5}, {"d", 1}}, 6);
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.word(3), "c");
  EXPECT_EQ(vocabulary.word(4), "a");
  EXPECT_THAT(vocabulary.ids({"a", "d", "c"}, 10), ElementsAre(4, kUnknown, 3, kEnd));
  EXPECT_THAT(vocabulary.ids({"a", "b", "c"}, 3), ElementsAre(4, 5, kEnd));
  EXPECT_THAT(vocabulary.ids({}, 3), ElementsAre(kEnd));
}

std::vector<int64_t> row(const torch::Tensor& tensor, int64_t index) {
  const auto values = tensor[index].contiguous();
  return {values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel()};
}

TEST(Pairs, ArePaddedAndCounted) {
  Pairs pairs(4, 3);
  pairs.add({5, 6, 7, 1}, {5, 6, 1});
  pairs.add({8, 1}, {1});
  const auto batch = pairs.fetch({1, 0, 1});
  EXPECT_EQ(batch.input[0].sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_THAT(row(batch.input[0], 0), ElementsAre(8, 1, 0, 0));
  EXPECT_THAT(row(batch.input[0], 1), ElementsAre(5, 6, 7, 1));
  EXPECT_THAT(row(batch.input[1], 1), ElementsAre(0, 5, 6));
  EXPECT_THAT(row(batch.input[1], 2), ElementsAre(0, 0, 0));
  EXPECT_THAT(row(batch.target.tensor(), 1), ElementsAre(5, 6, 1));
  EXPECT_THAT(row(batch.target.tensor(), 2), ElementsAre(1, 0, 0));
  EXPECT_EQ(batch.target.count(), 5);
  EXPECT_EQ(batch.target.tensor().ne(kPad).sum().item<int64_t>(), batch.target.count());
}

TEST(Pairs, AreNoLongerThanTheirBatchNeeds) {
  Pairs pairs(100, 12, Padding::longest);
  pairs.add(std::vector<int32_t>(9, 7), {5, 6, 1});
  pairs.add({8, 1}, std::vector<int32_t>(9, 4));
  const auto both = pairs.fetch({1, 0});
  EXPECT_EQ(both.input[0].sizes(), (std::vector<int64_t>{2, 16}));
  EXPECT_EQ(both.input[1].sizes(), (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(both.target.count(), 12);
  EXPECT_EQ(both.input[0][0][2].item<int64_t>(), kPad);
  const auto alone = pairs.fetch({0});
  EXPECT_EQ(alone.target.tensor().sizes(), (std::vector<int64_t>{1, 8}));
  EXPECT_THAT(row(alone.target.tensor(), 0), ElementsAre(5, 6, 1, 0, 0, 0, 0, 0));
}

TEST(Pairs, HaveAUnigramCrossEntropy) {
  Pairs train(2, 4), other(2, 4);
  train.add({1}, {3, 3, 4, 1});
  other.add({1}, {3, 1});
  // Counts and one more of each of five: 1, 2, 1, 3, 2, of nine.
  EXPECT_NEAR(unigram_cross_entropy(train, other, 5), -(std::log(3. / 9) + std::log(2. / 9)) / 2,
              1e-12);
}

Options options_of(const TemporaryFolder& folder, const std::string& yaml) {
  Options options;
  options.task = "summaries";
  options.config = folder.write("mine.yaml", "base: laptop\n" + yaml).string();
  return options;
}

std::string task_error(const Options& options) {
  return error_of([&] { make_task(options); });
}

TEST(Folder, OfJsonLinesIsReadAsTheTaskWants) {
  const TemporaryFolder folder;
  auto options = options_of(folder, "");
  options.data = folder.path();
  EXPECT_THAT(task_error(options), HasSubstr("has no train.jsonl"));
  folder.write("train.jsonl", to_json_line({"The cat sat. The end.", "Cat."}, "1"));
  folder.write("validation.json", to_json_line({"A dog.", ""}, "2"));
  EXPECT_THAT(task_error(options), HasSubstr("has no test.jsonl"));
  const auto test = folder.write("test.jsonl", to_json_line({"", "The cat"}, "3") + "{}");
  EXPECT_THAT(task_error(options), HasSubstr(test.string() + ":2: this line has no \"document\""));
  folder.write("test.jsonl", to_json_line({"", "The cat"}, "3"));
  const auto task = make_task(options);
  const auto batch = task->dataset("test").get_batch({0});
  // The, a full stop and cat are the most frequent words of training: 3, 4 and 5, in byte order.
  EXPECT_THAT(row(batch.input[0].narrow(1, 0, 2), 0), ElementsAre(kEnd, kPad));
  EXPECT_THAT(row(batch.target.tensor().narrow(1, 0, 4), 0), ElementsAre(5, 4, kEnd, kPad));
  EXPECT_EQ(task->baselines().size(), 1U);  // nobody knows a floor
  options.data = folder.path() / "nowhere";
  EXPECT_THAT(task_error(options), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace tasks::summaries
