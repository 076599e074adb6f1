#include "evidence/tensors.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "instrumentation/log.hpp"

namespace checker {

namespace format = instrumentation;

namespace {

template <class T>
T load(std::string_view bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

double from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction.
double from_float16(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

template <class T, class Convert>
std::optional<std::vector<double>> convert(std::string_view bytes, Convert to_double) {
  if (bytes.size() % sizeof(T) != 0) return std::nullopt;
  std::vector<double> numbers;
  numbers.reserve(bytes.size() / sizeof(T));
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    numbers.push_back(to_double(load<T>(bytes, at)));
  }
  return numbers;
}

template <class T>
std::optional<std::vector<double>> convert(std::string_view bytes) {
  return convert<T>(bytes, [](T value) { return static_cast<double>(value); });
}

// Bytes of one element; 0 for a type that is not known.
size_t size_of(int32_t scalar_type) {
  switch (scalar_type) {
    case 0:
    case 11:
      return 1;
    case 5:
    case 15:
      return 2;
    case 3:
    case 6:
      return 4;
    case 4:
    case 7:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::vector<double>> read_numbers(int32_t scalar_type, std::string_view bytes) {
  switch (scalar_type) {  // as element_name() numbers them
    case 0:
    case 11:
      return convert<uint8_t>(bytes);
    case 3:
      return convert<int32_t>(bytes);
    case 4:
      return convert<int64_t>(bytes);
    case 5:
      return convert<uint16_t>(bytes, from_float16);
    case 6:
      return convert<float>(bytes);
    case 7:
      return convert<double>(bytes);
    case 15:
      return convert<uint16_t>(bytes, from_bfloat16);
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<TensorSeen>> read_tensors(std::string_view payload) {
  std::vector<TensorSeen> tensors;
  for (size_t at = 0; at < payload.size();) {
    if (payload.size() - at < sizeof(format::TensorRecord)) return std::nullopt;
    const auto record = load<format::TensorRecord>(payload, at);
    at += sizeof record;
    const uint64_t left = payload.size() - at;
    if (record.name_size > left || record.dimensions > left / sizeof(int64_t) ||
        record.bytes > left ||
        record.name_size + record.dimensions * sizeof(int64_t) + record.bytes > left) {
      return std::nullopt;
    }
    TensorSeen tensor{.name = std::string(payload.substr(at, record.name_size)),
                      .scalar_type = record.scalar_type,
                      .buffer = record.buffer != 0,
                      .sizes = {},
                      .elements = record.elements,
                      .values = {}};
    at += record.name_size;
    for (uint32_t i = 0; i < record.dimensions; ++i, at += sizeof(int64_t)) {
      tensor.sizes.push_back(load<int64_t>(payload, at));
    }
    if (record.bytes > 0) {
      auto values = read_numbers(record.scalar_type, payload.substr(at, record.bytes));
      if (!values || values->size() != record.elements) return std::nullopt;
      tensor.values = std::move(*values);
    }
    at = format::padded(at + record.bytes);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::optional<std::vector<double>> read_values(std::string_view payload,
                                               const std::vector<TensorSeen>& tensors) {
  std::vector<double> all;
  for (const auto& tensor : tensors) {
    const size_t size = size_of(tensor.scalar_type);
    if (size == 0 || tensor.elements > payload.size() / size) return std::nullopt;
    const auto values = read_numbers(tensor.scalar_type, payload.substr(0, tensor.elements * size));
    all.insert(all.end(), values->begin(), values->end());
    payload.remove_prefix(tensor.elements * size);
  }
  if (!payload.empty()) return std::nullopt;
  return all;
}

}  // namespace checker
