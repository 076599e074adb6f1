#include "instrumentation/memory.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/error.hpp"
#include "ranks.hpp"

namespace instrumentation {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// In processes of their own: the allocator stays.
TEST(Memory, CountsTheBytesOfTensors) {
  ranks::run(1, [] {
    const auto before = at::empty({100}, at::kByte);
    memory::count();
    EXPECT_EQ(memory::look().live, 0U);
    auto tensor = at::empty({1000}, at::kByte);
    { const auto more = at::empty({500}, at::kDouble); }
    const auto first = memory::look();
    EXPECT_EQ(first.live, 1000U);
    EXPECT_EQ(first.most, 5000U);
    EXPECT_EQ(first.least, 0U);
    tensor = at::Tensor();
    const auto next = at::empty({300}, at::kByte);
    const auto second = memory::look();
    EXPECT_EQ(second.live, 300U);
    EXPECT_EQ(second.most, 1000U);
    EXPECT_EQ(second.least, 0U);
  });
}

TEST(Memory, WhatIsTooMuchIsRefusedInWords) {
  ranks::run(1, [] {
    memory::limit(1'000'000, "--memory-limit");
    auto half = at::empty({500'000}, at::kByte);
    try {
      const auto more = at::empty({600'000}, at::kByte);
      FAIL() << "1.1 MB";
    } catch (const distributed_utils::Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("a tensor of 0.60 MB does not fit"),
                                      HasSubstr("take 0.50 MB already"),
                                      HasSubstr("--memory-limit allows 1.00 MB")));
    }
    half = at::Tensor();
    EXPECT_EQ(at::empty({600'000}, at::kByte).numel(), 600'000);
  });
}

}  // namespace
}  // namespace instrumentation
