// XSum's archive becomes lines of JSON.
#include <nlohmann/json.hpp>

#include "data/manifest.hpp"
#include "data/xsum.hpp"
#include "data_fixture.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As the archive has it (https://github.com/EdinburghNLP/XSum).
std::string article(const std::string& summary, const std::string& document) {
  return "[SN]URL[SN]\nhttp://web.archive.org/web/1/http://www.bbc.co.uk/news/1\n\n"
         "[SN]TITLE[SN]\nA title\n\n[SN]FIRST-SENTENCE[SN]\n" +
         summary + "\n\n[SN]RESTBODY[SN]\n" + document + "\n";
}

TEST(Xsum, AnArticleIsItsFirstSentenceAndWhatFollows) {
  const auto read = data::read_article(article("One sentence.",
                                               "Share this with\nEmail\nFirst line.\n\n"
                                               "An Email is no mail.\nTwitter\n\tSecond line.  "));
  EXPECT_EQ(read.summary, "One sentence.");
  EXPECT_EQ(read.document, "First line.\nAn Email is no mail.\n\tSecond line.");
  EXPECT_THAT(testing::error_of([] { data::read_article("[SN]URL[SN]\nx\n"); }),
              HasSubstr("it lacks one of the parts"));
}

class DataXsumTest : public testing::DataTest {
 protected:
  void serve(const std::map<std::string, std::string>& articles, const std::string& splits) {
    server_.serve("/XSUM-EMNLP18-Summary-Data-Original.tar.gz", {.bytes = archive(articles)});
    server_.serve("/XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json", {.bytes = splits});
  }
};

TEST_F(DataXsumTest, TheSplitsAreLinesOfJson) {
  serve({{"1.summary", article("S \"1\"", "Köln\nD")},
         {"2.summary", article("S 2", "D 2")},
         {"3.summary", article("S 3", "D 3")},
         {"9.summary", "in no split"}},
        R"({"train": ["1"], "validation": ["2"], "test": ["3"]})");
  const auto fetched = fetch("xsum", {"--trust"});
  EXPECT_EQ(fetched.status, 0) << fetched.text;
  EXPECT_THAT(data::files_below(folder()),
              ElementsAre("manifest.sha256", "test.jsonl", "train.jsonl", "validation.jsonl"));
  const auto lines = split_lines(read_file(folder() / "train.jsonl"));
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(nlohmann::json::parse(lines[0]),
            (nlohmann::json{{"document", "Köln\nD"}, {"summary", "S \"1\""}, {"id", "1"}}));
  EXPECT_THAT(read_file(folder() / "test.jsonl"), HasSubstr("\"S 3\""));
  EXPECT_THAT(fetched.text, HasSubstr("--task summaries --config t5 --data "));
}

TEST_F(DataXsumTest, WhatIsMissingOrDamagedIsNamed) {
  serve({{"1.summary", article("S", "D")}}, R"({"train": ["1"], "validation": ["2"], "test": []})");
  EXPECT_THAT(fetch("xsum", {"--trust"}).text,
              HasSubstr("1 of 2 articles are missing, for example 2. Fix: "));
  std::filesystem::remove_all(folder());
  serve({{"2.summary", "nothing"}}, R"({"train": ["1"], "validation": ["2"], "test": []})");
  EXPECT_THAT(fetch("xsum", {"--trust"}).text,
              HasSubstr("In top/2.summary, it lacks one of the parts"));
  std::filesystem::remove_all(folder());
  serve({{"2.summary", article("\xff", "D")}},
        R"({"train": ["1"], "validation": ["2"], "test": []})");
  EXPECT_THAT(fetch("xsum", {"--trust"}).text, HasSubstr("In top/2.summary, it is not UTF-8. Fix"));
  std::filesystem::remove_all(folder());
  serve({{"2.summary", article("S", "D")}}, R"({"train": ["1"]})");
  EXPECT_THAT(fetch("xsum", {"--trust"}).text, HasSubstr("It does not list the splits"));
}

}  // namespace
}  // namespace checker
