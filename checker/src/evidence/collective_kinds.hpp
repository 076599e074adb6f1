#pragma once
/// The kinds of collectives, reduce operations and element types as evidence numbers them, which is
/// as torch does. The replay, which links torch, asserts that (checker/replay/torch_numbers.cpp).
#include <array>
#include <cstdint>
#include <string_view>

namespace checker {

enum class CollectiveKind : uint8_t {
  broadcast,
  all_reduce,
  all_reduce_coalesced,
  reduce,
  all_gather,
  all_gather_into_tensor,
  all_gather_coalesced,
  gather,
  scatter,
  reduce_scatter,
  all_to_all_single,
  all_to_all,
  send,
  recv,
  recv_any_source,
  barrier,
  reduce_scatter_tensor,
  coalesced,
  all_reduce_sparse,
};

/// What each kind is called, by its number.
inline constexpr std::array<std::string_view, 19> kCollectiveNames{"broadcast",
                                                                   "all_reduce",
                                                                   "all_reduce_coalesced",
                                                                   "reduce",
                                                                   "all_gather",
                                                                   "all_gather",
                                                                   "all_gather_coalesced",
                                                                   "gather",
                                                                   "scatter",
                                                                   "reduce_scatter",
                                                                   "all_to_all",
                                                                   "all_to_all",
                                                                   "send",
                                                                   "recv",
                                                                   "recv",
                                                                   "barrier",
                                                                   "reduce_scatter",
                                                                   "coalesced collectives",
                                                                   "all_reduce of sparse tensors"};

/// The reduce operations, by their number.
inline constexpr std::array<std::string_view, 5> kReduceOpNames{"SUM", "AVG", "PRODUCT", "MIN",
                                                                "MAX"};

/// An element type's name; "elements" for one that nobody expects.
constexpr std::string_view element_name(int8_t scalar_type) {
  switch (scalar_type) {
    case 0:
      return "uint8";
    case 3:
      return "int32";
    case 4:
      return "int64";
    case 5:
      return "float16";
    case 6:
      return "float32";
    case 7:
      return "float64";
    case 11:
      return "bool";
    case 15:
      return "bfloat16";
    default:
      return "elements";
  }
}

}  // namespace checker
