#include "tasks/autocast.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tasks {
namespace {

TEST(Operand, HasTheTypeOfProductsWhileAnAutocastLives) {
  const auto floats = torch::ones({2, 2}), doubles = floats.to(torch::kDouble);
  {
    const Autocast autocast(torch::kCPU, Products::bf16);
    EXPECT_EQ(operand(floats).scalar_type(), torch::kBFloat16);
    EXPECT_EQ(operand(floats).scalar_type(), at::matmul(floats, floats).scalar_type());
    EXPECT_TRUE(operand(doubles).is_same(doubles));
  }
  EXPECT_TRUE(operand(floats).is_same(floats));
  const Autocast changes_nothing(torch::kCPU, Products::tf32);
  EXPECT_TRUE(operand(floats).is_same(floats));
}

}  // namespace
}  // namespace tasks
