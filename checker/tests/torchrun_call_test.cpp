// Command lines of torchrun, as torchrun reads them.
#include <gmock/gmock.h>

#include "jobs/torchrun_call.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;

TorchrunCall parse(const std::vector<std::string>& words,
                   const std::map<std::string, std::string>& environment = {}) {
  return parse_torchrun(words, environment);
}

TEST(TorchrunCall, OptionsEndAtTheProgram) {
  const auto call =
      parse({"--nnodes=2", "--rdzv_id", "7", "--no_python", "train", "--rdzv-id=8", "x"});
  EXPECT_EQ(call.option("nnodes"), "2");
  EXPECT_EQ(call.option("rdzv-id"), "7");
  EXPECT_EQ(call.option("node-rank"), "");
  EXPECT_TRUE(call.has("no-python"));
  EXPECT_EQ(call.program, "train");
  EXPECT_THAT(call.arguments, ElementsAre("--rdzv-id=8", "x"));
}

TEST(TorchrunCall, TheProgramMayBeMissingOrEmpty) {
  EXPECT_FALSE(parse({"--nnodes=2"}).has_program);
  EXPECT_FALSE(parse({"--nnodes"}).has_program);
  const auto empty = parse({"--nnodes=2", ""});
  EXPECT_TRUE(empty.has_program);
  EXPECT_EQ(empty.program, "");
  EXPECT_EQ(parse({"--", "train"}).program, "train");
}

TEST(TorchrunCall, AnOptionOfSomebodyElsesEndsTheReading) {
  const auto call = parse({"--nnodes=2", "--output", "o", "train"});
  EXPECT_EQ(call.unknown, "--output");
  EXPECT_FALSE(call.has_program);
}

TEST(TorchrunCall, TheEnvironmentStandsInForOptions) {
  const auto call =
      parse({"--nnodes=3", "train"},
            {{"PET_NNODES", "2"}, {"PET_RDZV_ID", "7"}, {"PET_STANDALONE", "0"}, {"NNODES", "4"}});
  EXPECT_EQ(call.option("nnodes"), "3");
  EXPECT_EQ(call.option("rdzv-id"), "7");
  EXPECT_FALSE(call.has("standalone"));
}

}  // namespace
}  // namespace checker
