#pragma once
/// Checks whether bytes are UTF-8 text.
#include <cstddef>
#include <string_view>

namespace tasks::language_model {

enum class Utf8 { valid, invalid, cut_off };

struct Utf8Check {
  Utf8 result = Utf8::valid;
  size_t offset = 0;  ///< of the first byte that is wrong
};

/// Whether the bytes are UTF-8 (RFC 3629) without NUL; cut_off: they are but for a last character
/// that lacks bytes.
Utf8Check check_utf8(std::string_view bytes);

}  // namespace tasks::language_model
