#pragma once
/// The tensors in what a forward returned, for wrappers of models that must look into it.
#include <ATen/core/Tensor.h>
#include <torch/types.h>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace distributed_utils {

/// Overload it, found by argument-dependent look-up, for result types of your own.
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
