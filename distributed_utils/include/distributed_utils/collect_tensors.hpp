#pragma once
/// collect_tensors finds the tensors in a forward's result. Wrappers such as
/// DistributedDataParallel need them to know when backward() begins.
#include <ATen/core/Tensor.h>
#include <torch/types.h>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace distributed_utils {

/// Overload it for your own result types. Argument-dependent look-up finds the overload.
inline void collect_tensors(const torch::Tensor& tensor, std::vector<torch::Tensor>& into) {
  into.push_back(tensor);
}
template <typename T>
void collect_tensors(const std::vector<T>& values, std::vector<torch::Tensor>& into) {
  for (const auto& value : values) collect_tensors(value, into);
}
template <typename K, typename T>
void collect_tensors(const std::map<K, T>& values, std::vector<torch::Tensor>& into) {
  for (const auto& [key, value] : values) collect_tensors(value, into);
}
template <typename... Ts>
void collect_tensors(const std::tuple<Ts...>& values, std::vector<torch::Tensor>& into) {
  std::apply([&](const auto&... value) { (collect_tensors(value, into), ...); }, values);
}
template <typename A, typename B>
void collect_tensors(const std::pair<A, B>& values, std::vector<torch::Tensor>& into) {
  collect_tensors(values.first, into);
  collect_tensors(values.second, into);
}

}  // namespace distributed_utils
