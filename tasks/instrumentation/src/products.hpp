#pragma once
/// How many matrix products this process has begun: what a program computes while a collective is
/// under way is told by the difference.
#include <cstdint>
#include <string_view>

namespace instrumentation {

uint64_t products_begun();

/// An operator begins; it counts if it is a matrix product.
void count_product(std::string_view op);

}  // namespace instrumentation
