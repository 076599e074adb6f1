// Data as XSum comes, whole and damaged.
#include "json_lines.hpp"

#include <gmock/gmock.h>

#include <random>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace tasks::summaries {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<Pair> pairs_in(const std::filesystem::path& file) {
  std::vector<Pair> pairs;
  for_each_pair(file, [&](const Pair& pair) { pairs.push_back(pair); });
  return pairs;
}

constexpr const char* kGood = R"({"document": "A b.", "summary": "C", "id": "7"})"
                              "\n";

TEST(JsonLines, AreReadInOrder) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "train.jsonl", std::string(kGood) + R"({"id": 8, "summary": "é \u00e9 \n", "document": "", )"
                                          R"("more": {"document": [1, null, {"summary": 2.5}]}})");
  const auto pairs = pairs_in(file);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].document, "A b.");
  EXPECT_EQ(pairs[0].summary, "C");
  EXPECT_EQ(pairs[1].document, "");
  EXPECT_EQ(pairs[1].summary, "é é \n");
}

TEST(JsonLines, ThatAreWrittenAreReadAgain) {
  const TemporaryFolder folder;
  const Pair pair{"\"quotes\"\\ and\nlines\tß", "\x01"};
  const auto read = pairs_in(folder.write("a.jsonl", to_json_line(pair, "1")));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].document, pair.document);
  EXPECT_EQ(read[0].summary, pair.summary);
}

// The second line is wrong each time.
TEST(JsonLines, ThatAreWrongAreNamed) {
  const TemporaryFolder folder;
  const auto error_at_2 = [&](const std::string& line) {
    const auto file = folder.write("train.jsonl", kGood + line + '\n' + kGood);
    const auto error = error_of([&] { pairs_in(file); });
    EXPECT_THAT(error, AllOf(HasSubstr(file.string() + ":2: "), HasSubstr("Fix: "))) << line;
    return error;
  };
  EXPECT_THAT(error_at_2(R"({"document": "a)"), HasSubstr("not JSON from byte"));
  EXPECT_THAT(error_at_2(R"({"document": "a", "id": "b"})"), HasSubstr("no \"summary\""));
  EXPECT_THAT(error_at_2(R"({"summary": "a"})"), HasSubstr("no \"document\""));
  EXPECT_THAT(error_at_2(R"({"document": 1, "summary": "a"})"), HasSubstr("is not a string"));
  EXPECT_THAT(error_at_2(R"({"document": ["a"], "summary": "a"})"), HasSubstr("is not a string"));
  EXPECT_THAT(error_at_2(R"({"document": "a", "summary": null})"), HasSubstr("is not a string"));
  EXPECT_THAT(error_at_2(R"({"document": "a", "document": "b", "summary": "c"})"),
              HasSubstr("\"document\" twice"));
  EXPECT_THAT(error_at_2("{\"document\": \"\xff\", \"summary\": \"a\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_at_2("{\"document\": \"\xc3\", \"summary\": \"a\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_at_2(R"(["document", "summary"])"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_at_2("7"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_at_2(""), HasSubstr("is blank"));
  EXPECT_THAT(error_at_2(" \r"), HasSubstr("is blank"));
  EXPECT_THAT(error_at_2(std::string(9, '\0')), HasSubstr("not JSON"));
  EXPECT_THAT(error_at_2(R"({"document": "a", "summary": "b"}x)"), HasSubstr("not JSON"));
}

TEST(JsonLines, ThatNeverEndAreRefused) {
  const TemporaryFolder folder;
  const std::string endless(kLongestLine + 9, 'a');
  const auto file = folder.write("a.jsonl", kGood + ("{\"document\": \"" + endless));
  EXPECT_THAT(error_of([&] { pairs_in(file); }), HasSubstr("a.jsonl:2: this line is longer"));
  // As deep as a line can be: a reader that called itself would run out of stack.
  for (const auto* const start : {"[", "{\"a\":"}) {
    std::string deep;
    while (deep.size() < kLongestLine / 8) deep += start;
    const auto nested = folder.write("b.jsonl", "{\"id\": " + deep);
    EXPECT_THAT(error_of([&] { pairs_in(nested); }), HasSubstr("b.jsonl:1: this line is not JSON"));
  }
}

TEST(JsonLines, OfNoFileAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { pairs_in(folder.path() / "a.jsonl"); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { pairs_in(folder.path()); }), HasSubstr("cannot be read as a file"));
  EXPECT_THAT(error_of([&] { pairs_in(folder.write("b.jsonl", "")); }), HasSubstr("is empty"));
}

// Whatever happens to a file, it is read or refused with its name. What is cut within a line is
// always refused, and so are bytes that no text has.
TEST(JsonLines, ThatAreDamagedAreReadOrNamed) {
  const TemporaryFolder folder;
  std::string whole;
  for (int i = 0; i < 12; ++i) whole += kGood;
  const std::string_view line = kGood;
  std::mt19937_64 random(3);
  size_t refused = 0;
  for (int round = 0; round < 1000; ++round) {
    auto damaged = whole;
    const auto at = random() % whole.size();
    const bool cuts = round % 2 == 0;
    const bool breaks_text = round % 4 == 1;
    if (cuts) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(breaks_text ? 0xff : random());
    }
    const auto file = folder.write("damaged.jsonl", damaged);
    const auto within = at % line.size();
    const bool must_fail =
        breaks_text || (cuts && (at == 0 || (within != 0 && within != line.size() - 1)));
    try {
      pairs_in(file);
      EXPECT_FALSE(must_fail) << damaged;
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("damaged.jsonl"));
    }
  }
  EXPECT_GT(refused, 700U);
}

}  // namespace
}  // namespace tasks::summaries
