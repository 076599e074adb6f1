// What options do to a process, and its last words.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <thread>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Apply, SetsThreadsSeedAndDeterminismAndMakesTheOutputFolder) {
  const TemporaryFolder folder;
  Options options;
  options.threads = 3;
  options.deterministic = true;
  options.seed = 7;
  options.output = folder.path() / "a" / "b";
  apply(options);
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_TRUE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(std::filesystem::is_directory(options.output));
  const auto first = torch::rand({4});
  apply(options);
  EXPECT_TRUE(torch::equal(torch::rand({4}), first));
  options.seed = 8;
  apply(options);
  EXPECT_FALSE(torch::equal(torch::rand({4}), first));
  at::globalContext().setDeterministicAlgorithms(false, false);
}

// A step's tensors come and go: their pages must not be asked for anew.
TEST(Apply, MemoryThatAStepFreesServesTheNext) {
  const TemporaryFolder folder;
  Options options;
  options.output = folder.path();
  apply(options);
  const auto page_faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const auto step = [] {
    std::vector<torch::Tensor> tensors;  // 4 of 5 MiB, of 1280 pages each
    for (int i = 0; i < 4; ++i) tensors.push_back(torch::ones({5 << 18}));
  };
  for (int i = 0; i < 20; ++i) step();  // glibc before 2.38 leaves gaps at first
  const auto before = page_faults();
  for (int i = 0; i < 4; ++i) step();
  EXPECT_LT(page_faults() - before, 1000);
}

TEST(Apply, TheMemoryLimitIsForCpus) {
  Options options;
  options.memory_limit = 2;
  options.device = torch::Device(torch::kCUDA);
  if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no GPU, which is refused first";
  EXPECT_THAT(error_of([&] { apply(options); }), HasSubstr("--memory-limit"));
}

TEST(Apply, NamesAnOutputFolderThatCannotBe) {
  const TemporaryFolder folder;
  Options options;
  options.output = folder.write("file", "x") / "below";
  EXPECT_THAT(error_of([&] { apply(options); }),
              AllOf(HasSubstr("--output"), HasSubstr(options.output.string())));
  options.output = folder.path() / "file";
  EXPECT_THAT(error_of([&] { apply(options); }), HasSubstr("--output"));
}

TEST(Apply, RefusesAGpuThatIsNotThere) {
  const TemporaryFolder folder;
  Options options;
  options.output = folder.path();
  options.device = torch::Device(torch::kCUDA, 100);
  EXPECT_THAT(error_of([&] { apply(options); }), HasSubstr("--device: "));
}

std::string reported(const std::exception& error) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(report(error), 1);
  return testing::internal::GetCapturedStderr();
}

TEST(Report, PrintsTheErrorInOneLineWithoutColoursIntoAFile) {
  EXPECT_EQ(reported(Error("no such thing")), "error: no such thing\n");
}

TEST(Report, LeavesOutTheBacktraceOfTorch) {
  try {
    TORCH_CHECK(false, "first\nsecond");
  } catch (const std::exception& error) {
    EXPECT_EQ(reported(error), "error: first\n");
  }
  try {
    torch::ones({2}) + torch::ones({3});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(reported(error), AllOf(HasSubstr("size of tensor"), Not(HasSubstr("frame #"))));
  }
}

TEST(ReportUncaught, WhatAThreadThrowsIsToldBeforeTheProcessEnds) {
  EXPECT_DEATH(
      {
        report_uncaught();
        std::thread([] { throw Error("nobody waits for this thread"); }).join();
      },
      "error: nobody waits for this thread");
}

}  // namespace
}  // namespace tasks
