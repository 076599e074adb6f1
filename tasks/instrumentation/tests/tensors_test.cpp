#include "instrumentation/tensors.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "instrumentation/log.hpp"

namespace instrumentation {
namespace {

template <class T>
T read(const Payload& payload, size_t at) {
  T value;
  EXPECT_LE(at + sizeof value, payload.size());
  std::memcpy(&value, payload.data() + at, sizeof value);
  return value;
}

TEST(Tensors, AreDescribedEachInItsOwnType) {
  const std::vector<NamedTensor> tensors{
      {"weight", torch::full({2, 3}, 1.5, torch::kBFloat16), false},
      {"count", torch::tensor(int64_t{7}), true}};
  const auto payload = describe_tensors(tensors, /*with_values=*/true);
  const auto first = read<TensorRecord>(payload, 0);
  EXPECT_EQ(first.scalar_type, static_cast<int32_t>(torch::kBFloat16));
  EXPECT_EQ(first.buffer, 0U);
  EXPECT_EQ(first.dimensions, 2U);
  EXPECT_EQ(first.bytes, 12U);
  const size_t sizes = sizeof first + 6;
  EXPECT_EQ(read<int64_t>(payload, sizes + 8), 3);
  EXPECT_EQ(read<uint16_t>(payload, sizes + 16), 0x3fc0);  // 1.5
  const size_t second_at = padded(sizes + 16 + 12);
  const auto second = read<TensorRecord>(payload, second_at);
  EXPECT_EQ(second.buffer, 1U);
  EXPECT_EQ(second.dimensions, 0U);
  EXPECT_EQ(read<int64_t>(payload, second_at + sizeof second + 5), 7);
  EXPECT_EQ(payload.size(), padded(second_at + sizeof second + 5 + 8));
}

TEST(Tensors, WithoutValuesAreNamesAndSizes) {
  const std::vector<NamedTensor> tensors{{"w", torch::ones({4})}};
  const auto payload = describe_tensors(tensors, /*with_values=*/false);
  EXPECT_EQ(read<TensorRecord>(payload, 0).bytes, 0U);
  EXPECT_EQ(read<TensorRecord>(payload, 0).elements, 4U);
  EXPECT_EQ(payload.size(), padded(sizeof(TensorRecord) + 1 + 8));
}

TEST(Tensors, GradientsAreZerosWhereThereAreNone) {
  const std::vector<at::Tensor> parameters{torch::ones({2}, torch::kDouble).requires_grad_(),
                                           torch::ones({1}, torch::kFloat).requires_grad_()};
  (parameters[1] * 3).sum().backward();
  const auto payload = gradients_of(parameters);
  ASSERT_EQ(payload.size(), 20U);
  EXPECT_EQ(read<double>(payload, 8), 0.0);
  EXPECT_EQ(read<float>(payload, 16), 3.0F);
}

}  // namespace
}  // namespace instrumentation
