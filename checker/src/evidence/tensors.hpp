#pragma once
/// Tensors as a log holds them (see TensorRecord in instrumentation/events.hpp), in any type that
/// torch trains in, read as doubles.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

struct TensorSeen {
  std::string name;
  int32_t scalar_type = 7;  ///< c10::ScalarType
  bool buffer = false;      ///< or a parameter
  std::vector<int64_t> sizes;
  uint64_t elements = 0;
  std::vector<double> values;  ///< none if the log tells none
};

/// The numbers in these bytes; nothing for a type that is not known and for a part of a number.
std::optional<std::vector<double>> read_numbers(int32_t scalar_type, std::string_view bytes);

/// Nothing for what is not a list of tensors.
std::optional<std::vector<TensorSeen>> read_tensors(std::string_view payload);

/// The values of these tensors, which lie one after the other; nothing if they do not fit.
std::optional<std::vector<double>> read_values(std::string_view payload,
                                               const std::vector<TensorSeen>& tensors);

}  // namespace checker
