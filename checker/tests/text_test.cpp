#include "support/text.hpp"

#include <gmock/gmock.h>

#include "files.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Text, SplitsLinesWithAndWithoutALastEnd) {
  EXPECT_THAT(split_lines(""), IsEmpty());
  EXPECT_THAT(split_lines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_lines("a\n"), ElementsAre("a"));
}

TEST(Text, SplitsAtASeparator) {
  EXPECT_THAT(split("0,1,,2", ','), ElementsAre("0", "1", "", "2"));
  EXPECT_THAT(split(std::string_view("a\0b\0", 4), '\0'), ElementsAre("a", "b"));
}

TEST(Text, ReadsWholeNumbers) {
  EXPECT_EQ(whole_number("29500", 0), 29500);
  EXPECT_EQ(whole_number("12th", 0), 12);
  EXPECT_EQ(whole_number("none", -1), -1);
  EXPECT_EQ(whole_number("", 7), 7);
}

TEST(Text, WrapsBetweenWordsOnly) {
  EXPECT_THAT(wrap("one two  three\nfour", 9), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(wrap("incomprehensible word", 4), ElementsAre("incomprehensible", "word"));
  EXPECT_THAT(wrap("12345 789", 9), ElementsAre("12345 789"));
  EXPECT_THAT(wrap("  \n", 9), IsEmpty());
}

TEST(Text, CutsBetweenSentencesOrElseBetweenWords) {
  EXPECT_EQ(whole_sentences("One. Two.", 9), "One. Two.");
  EXPECT_EQ(whole_sentences("One. Two. Three.", 14), "One. Two.");
  EXPECT_EQ(whole_sentences("One or two, Optimizer.zero_grad.", 24), "One or two, ...");
  EXPECT_EQ(whole_sentences("unbroken", 4), "unbr ...");
}

TEST(Text, FindsTheNearestName) {
  const std::vector<std::string> verbs{"start", "run", "test", "render"};
  EXPECT_EQ(nearest("rnu", verbs), "run");
  EXPECT_EQ(nearest("strat", verbs), "start");
  EXPECT_EQ(nearest("ren", verbs), "render");
  EXPECT_EQ(nearest("tests", verbs), "test");
  EXPECT_EQ(nearest("frobnicate", verbs), "");
  EXPECT_EQ(did_you_mean("rnder", verbs), ". Did you mean 'render'?");
  EXPECT_EQ(did_you_mean("xyz", verbs), "");
}

TEST(Text, QuotesSoThatAShellReadsTheSameBack) {
  for (const std::string text :
       {"plain", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "", ";rm *"}) {
    const auto back = testing::run_program({"sh", "-c", "printf %s " + shell_quote(text)});
    EXPECT_EQ(back.text, text.empty() ? "" : text + "\n");
  }
}

TEST(Text, FingerprintsAreThoseOfFnv1a) {
  EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");
}

TEST(Text, SaysTimesAndCounts) {
  EXPECT_EQ(format_seconds(0.84), "0.8 s");
  EXPECT_EQ(format_seconds(59.97), "1 min 00 s");
  EXPECT_EQ(format_seconds(125), "2 min 05 s");
  EXPECT_EQ(count_of(1, "file"), "1 file");
  EXPECT_EQ(count_of(0, "file"), "0 files");
}

TEST(Replaced, ReplacesEveryOccurrenceOnce) {
  EXPECT_EQ(replaced("a, b, a", "a", "aa"), "aa, b, aa");
  EXPECT_EQ(replaced("nothing of it", "x", "y"), "nothing of it");
}

}  // namespace
}  // namespace checker
