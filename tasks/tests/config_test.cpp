#include "tasks/config.hpp"

#include "errors.hpp"
#include "some_table.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ConfigTest : public testing::Test {
 protected:
  Config load(const std::string& name) const { return Config::load(name, task_); }
  Config load_text(const std::string& yaml) const {
    return load(folder_.write("mine.yaml", yaml).string());
  }
  std::string error_of_text(const std::string& yaml) const {
    return error_of([&] { load_text(yaml); });
  }

  TemporaryFolder folder_;
  Entry task_ = some_entries().front();
};

TEST_F(ConfigTest, BuiltInConfigurationsAreFoundByName) {
  EXPECT_EQ(load("seed").integer("width", 1, 1000), 128);
  EXPECT_EQ(load("laptop").find("precision"), nullptr);
}

TEST_F(ConfigTest, AFileStartsFromItsBaseAndOverridesIt) {
  const auto config = load_text("base: seed\nwidth: 7\n");
  EXPECT_EQ(config.integer("width", 1, 1000), 7);
  EXPECT_EQ(config.find("precision")->text, "fp64");
  EXPECT_EQ(config.find("base"), nullptr);
}

TEST_F(ConfigTest, ABaseMayBeAFileBesideTheFile) {
  folder_.write("other.yaml", "rate: 2e-3\n");
  EXPECT_EQ(load_text("base: ./other.yaml\n").real("rate", 0, 1), 2e-3);
}

TEST_F(ConfigTest, BasesInACircleAreRefused) {
  EXPECT_THAT(error_of_text("base: ./mine.yaml\n"), HasSubstr("leads back to itself"));
}

TEST_F(ConfigTest, AnUnknownKeyIsNamedWithItsLineAndTheNearestKnownOne) {
  EXPECT_THAT(error_of_text("epochs: 1\n\nwdith: 3\n"),
              AllOf(HasSubstr("mine.yaml:3"), HasSubstr("'wdith'"), HasSubstr("'width'")));
  EXPECT_THAT(error_of_text("batch-size: 3\n"), HasSubstr("'batch_size'"));
}

TEST_F(ConfigTest, AnUnknownConfigurationIsNamedWithTheNearestKnownOne) {
  EXPECT_THAT(error_of([&] { load("latop"); }), HasSubstr("'laptop'"));
}

TEST_F(ConfigTest, WhatIsNoFlatYamlIsRefusedWithItsLine) {
  EXPECT_THAT(error_of_text("width: 1\nwidth: 2\n"),
              HasSubstr("mine.yaml:2: 'width' appears twice"));
  EXPECT_THAT(error_of_text("epochs: 1\nwidth: [1, 2]\n"), HasSubstr("mine.yaml:2"));
  EXPECT_THAT(error_of_text("epochs: 1\nwidth: {a\n"), HasSubstr("mine.yaml:"));
  EXPECT_THAT(error_of_text("just words\n"), HasSubstr("mine.yaml"));
  EXPECT_THAT(error_of_text(""), HasSubstr("mine.yaml"));
}

TEST_F(ConfigTest, AFileThatIsMissingIsNamed) {
  EXPECT_THAT(error_of([&] { load("/no/such.yaml"); }), HasSubstr("/no/such.yaml: no such"));
  EXPECT_THAT(error_of([&] { load(folder_.path().string()); }), HasSubstr("no such"));
}

TEST_F(ConfigTest, ABadValueIsNamedWithItsLine) {
  const auto config = load_text("epochs: 1\nwidth: 12x\n");
  EXPECT_THAT(error_of([&] { config.integer("width", 1, 9); }),
              AllOf(HasSubstr("mine.yaml:2: width"), HasSubstr("'12x'")));
}

TEST_F(ConfigTest, AMissingKeyIsNamedWithTheFix) {
  const auto config = load_text("epochs: 1\n");
  EXPECT_THAT(error_of([&] { config.integer("width", 1, 9); }),
              AllOf(HasSubstr("mine.yaml"), HasSubstr("'width'"), HasSubstr("base")));
}

TEST(ParseInteger, TakesWholeNumbersInRangeOnly) {
  const auto parse = [](const std::string& text) { return parse_integer({text, "--n"}, -2, 100); };
  EXPECT_EQ(parse("-2"), -2);
  EXPECT_EQ(parse("100"), 100);
  for (const auto* text :
       {"", " 1", "1 ", "1x", "0x10", "1.0", "1e1", "+1", "-3", "101", "99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("--n: ")) << text;
  }
}

TEST(ParseReal, TakesNumbersInRangeOnly) {
  const auto parse = [](const std::string& text) { return parse_real({text, "--x"}, 0, 1); };
  EXPECT_EQ(parse("0.5"), 0.5);
  EXPECT_EQ(parse("2e-3"), 2e-3);
  for (const auto* text : {"", "nan", "inf", "1e999", "-0.1", "1.5", "0.5f", "0,5"}) {
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("--x: ")) << text;
  }
}

TEST(ParseBoolean, TakesTrueAndFalseOnly) {
  EXPECT_TRUE(parse_boolean({"true", "--b"}));
  EXPECT_FALSE(parse_boolean({"false", "--b"}));
  EXPECT_THAT(error_of([] {
                parse_boolean({"yes", "--b"});
              }),
              HasSubstr("--b: expected true or false, got 'yes'"));
}

}  // namespace
}  // namespace tasks
