#include "windows.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

namespace tasks::language_model {
namespace {

TEST(Windows, AreInputsAndTargetsMovedOnByOne) {
  const Windows windows(torch::arange(10, torch::kInt), 4, 1);
  EXPECT_EQ(windows.size(), 6u);
  const std::vector<size_t> indices{5, 0};
  const auto batch = windows.fetch(indices);
  EXPECT_TRUE(torch::equal(batch.input, torch::tensor({{5, 6, 7, 8}, {0, 1, 2, 3}}, torch::kLong)));
  EXPECT_TRUE(torch::equal(batch.target, batch.input[0] + 1));
  EXPECT_EQ(batch.target.tensor().dtype(), torch::kLong);
}

TEST(Windows, StartAStrideApart) {
  for (int64_t stride = 1; stride < 6; ++stride) {
    const Windows windows(torch::arange(23, torch::kInt), 4, stride);
    EXPECT_EQ(int64_t(windows.size()), (23 - 5) / stride + 1);
    const std::vector<size_t> last{windows.size() - 1};
    EXPECT_EQ(windows.fetch(last).input[0][0][0].item<int64_t>(), (int64_t(last[0])) * stride);
  }
}

TEST(Windows, OfTheirOwnLengthPredictEveryWordOnce) {
  const Windows windows(torch::arange(33, torch::kInt), 8, 8);
  std::vector<size_t> all(windows.size());
  std::iota(all.begin(), all.end(), size_t{0});
  EXPECT_TRUE(torch::equal(windows.fetch(all).target.tensor().flatten(), torch::arange(1, 33)));
}

TEST(Windows, AreNoneInATextThatIsTooShort) {
  EXPECT_EQ(Windows(torch::arange(4, torch::kInt), 4, 1).size(), 0u);
  EXPECT_EQ(Windows(torch::arange(5, torch::kInt), 4, 1).size(), 1u);
}

int64_t resident_pages() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST(Windows, DoNotMultiplyTheText) {
  const auto tokens = torch::arange(2'000'000, torch::kInt);
  const auto before = resident_pages();
  const Windows windows(tokens, 32, 1);
  const std::vector<size_t> indices{0, 1'999'967};
  const auto batch = windows.fetch(indices);
  EXPECT_EQ(batch.target.tensor()[1][31].item<int64_t>(), 1'999'999);
  EXPECT_LT(resident_pages() - before, 1024) << "4 MiB; 33 windows' worth would be 264";
  EXPECT_EQ(windows.tokens().data_ptr(), tokens.data_ptr());
}

}  // namespace
}  // namespace tasks::language_model
