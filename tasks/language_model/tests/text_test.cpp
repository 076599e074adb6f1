#include "text.hpp"

#include <cstdlib>

#include "errors.hpp"
#include "temporary_folder.hpp"
#include "utf8.hpp"
#include "vocabulary.hpp"

namespace tasks::language_model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Text, IsLowerCasedWordsWithAnEndPerLine) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.txt", " = Robert <unk> = \n \n\xC3\x84pfel  ARE\tgood\r\n");
  EXPECT_THAT(read_words(file), ElementsAre("=", "robert", "<unk>", "=", "<eos>", "<eos>",
                                            "\xC3\x84pfel", "are", "good", "<eos>"));
}

TEST(Text, IsFoundUnderBothOfItsNames) {
  for (const auto& [train, valid, test] :
       {std::array{"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"},
        std::array{"train.txt", "valid.txt", "test.txt"}}) {
    const TemporaryFolder folder;
    folder.write(train, "a\n");
    folder.write(valid, "b\n");
    folder.write(test, "c\n");
    const auto text = read_text(folder.path());
    EXPECT_EQ(text.train[0] + text.validation[0] + text.test[0], "abc");
  }
}

TEST(Text, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { read_text(folder.path() / "none"); }),
              HasSubstr("none is not a folder"));
  EXPECT_THAT(error_of([&] { read_text(folder.path()); }),
              AllOf(HasSubstr("wiki.train.tokens"), HasSubstr("train.txt")));
  folder.write("train.txt", "a\n");
  EXPECT_THAT(error_of([&] { read_text(folder.path()); }), HasSubstr("valid.txt: no such file"));
}

TEST(Text, NamesAFileThatIsNone) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& content) {
    return error_of([&] { read_words(folder.write("x.txt", content)); });
  };
  EXPECT_THAT(error(""), HasSubstr("x.txt: holds no words"));
  EXPECT_THAT(error(" \n\n"), HasSubstr("holds no words"));
  EXPECT_THAT(error(std::string("ab\0c\n", 5)), HasSubstr("x.txt: byte 2 is not UTF-8"));
  EXPECT_THAT(error("ab\xFF\n"), HasSubstr("byte 2 is not UTF-8"));
  EXPECT_THAT(error("a\nb"), HasSubstr("middle of a line"));
  EXPECT_THAT(error("a\nb\xE2\x82"), HasSubstr("middle of a character"));
}

TEST(Utf8, FollowsRfc3629) {
  const auto result = [](std::string_view bytes) { return check_utf8(bytes).result; };
  EXPECT_EQ(result("a\xC2\x80\xE2\x82\xAC\xF0\x9F\x98\x80\xED\x9F\xBF\xF4\x8F\xBF\xBF"),
            Utf8::valid);
  for (const auto* bytes :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3z", "\xE2\x82z"}) {
    EXPECT_EQ(result(bytes), Utf8::invalid);
  }
  EXPECT_EQ(result("ab\xC3"), Utf8::cut_off);
  EXPECT_EQ(check_utf8("ab\xF0\x9F\x98").offset, 2u);
}

TEST(Vocabulary, IsOrderedByFrequencyThenBytes) {
  const std::vector<std::string> text{"b", "a", "c", "c", "<unk>", "<eos>", "<unk>"};
  const Vocabulary vocabulary(text, 100);
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_THAT(vocabulary.ids(std::vector<std::string>{"<unk>", "<eos>", "c", "a", "b", "new"}),
              ElementsAre(0, 1, 2, 3, 4, 0));
  EXPECT_EQ(vocabulary.word(3), "a");
}

TEST(Vocabulary, KeepsTheMostFrequentWords) {
  const std::vector<std::string> text{"b", "a", "c", "c", "<eos>"};
  const Vocabulary vocabulary(text, 4);
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_EQ(vocabulary.id("a"), 3);
  EXPECT_EQ(vocabulary.id("b"), 0);
  EXPECT_EQ(Vocabulary(text, 2).size(), 2);
}

TEST(WikiText, HasTheWordsItIsKnownFor) {
  const char* sample = std::getenv("WORLDSIZE_WIKITEXT");
  if (!sample) GTEST_SKIP() << "no text: WORLDSIZE_WIKITEXT=<sample of WikiText-2> tells of one";
  const auto text = read_text(sample);
  EXPECT_EQ(text.train.size(), 245569u);
  EXPECT_EQ(Vocabulary(text.train, 1 << 20).size(), 12507);
}

}  // namespace
}  // namespace tasks::language_model
