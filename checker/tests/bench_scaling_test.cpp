// ./workbook bench scaling with the finished trainer, on a task of a second.
#include <gmock/gmock.h>

#include "process/capture.hpp"
#include "trainer_fixture.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using testing::TrainerTest;

class BenchScaling : public TrainerTest {
 protected:
  Captured study(std::vector<std::string> more) const {
    std::vector<std::string> arguments{CHECKER_PROGRAM, "bench",  "scaling",   "--no-build",
                                       "--task",        "points", "--config",  "small",
                                       "--seeds",       "1",      "--output",  output().string(),
                                       "--samples",     "256",    "--largest", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return capture({.arguments = arguments, .environment = {}, .directory = {}});
  }
};

TEST_F(BenchScaling, ComparesBatchesAfterEquallyManySamples) {
  const auto said = study({"--", "--device", "cpu"});
  ASSERT_TRUE(said.success()) << said.output;
  const auto page = read_file(output() / "scaling.md");
  EXPECT_THAT(page, HasSubstr("256 samples in each run"));
  EXPECT_THAT(page, HasSubstr("| 16 | 1 | 0.05 | 16 | "));
  EXPECT_THAT(page, HasSubstr(" | 0.07071, times sqrt(2) | 8 | "));
  EXPECT_THAT(page, HasSubstr(" | 0.05, unchanged | 8 | "));
  EXPECT_THAT(read_file(output() / "batches.svg"), HasSubstr("learning rate unchanged"));
}

TEST_F(BenchScaling, GoesOnWithTheRunsThatThereAre) {
  ASSERT_TRUE(study({"--", "--device", "cpu"}).success());
  for (const auto& entry : std::filesystem::directory_iterator(output() / "runs")) {
    write_file(entry.path(), R"({"loss": 42.5, "seconds": 1})");
  }
  const auto resumed = study({"--resume", "--", "--device", "cpu"});
  EXPECT_THAT(resumed.output, HasSubstr("42.5"));
  const auto again = study({"--", "--device", "cpu"});
  EXPECT_THAT(again.output, ::testing::Not(HasSubstr("42.5")));
}

// All runs fail alike, and none takes the others' place.
TEST_F(BenchScaling, SaysWhyARunFailed) {
  const auto said = study({"--", "--device", "nothing"});
  EXPECT_EQ(said.status, 1) << said.output;
  EXPECT_THAT(said.output, HasSubstr("16 samples a step: "));
  EXPECT_THAT(said.output, HasSubstr("--device"));
  EXPECT_THAT(read_file(output() / "scaling.md"), HasSubstr("| failed |"));
}

TEST_F(BenchScaling, RefusesWhatMakesNoStudy) {
  for (const auto& [option, value] : {std::pair("--largest", "3"),
                                      {"--ranks", "0"},
                                      {"--seeds", "0"},
                                      {"--task", "nothing"},
                                      {"--config", "nothing"},
                                      {"--samples", "0"}}) {
    const auto said =
        capture({.arguments = {CHECKER_PROGRAM, "bench", "scaling", "--no-build", option, value},
                 .environment = {},
                 .directory = {}});
    EXPECT_EQ(said.status, 2) << said.output;
    EXPECT_THAT(said.output, HasSubstr(option));
  }
}

}  // namespace
}  // namespace checker
