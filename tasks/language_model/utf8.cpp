#include "utf8.hpp"

namespace tasks::language_model {
namespace {

// Bytes in the character that starts with this one, and what its second byte may be (RFC 3629,
// section 4: no overlong forms, no surrogates, nothing above U+10FFFF).
struct Lead {
  size_t length = 0;  // 0: no character starts so
  unsigned char least = 0x80;
  unsigned char most = 0xBF;
};

Lead lead(unsigned char byte) {
  if (byte == 0) return {};
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

Utf8Check check_utf8(std::string_view bytes) {
  size_t start = 0;
  while (start < bytes.size()) {
    auto [length, least, most] = lead(static_cast<unsigned char>(bytes[start]));
    if (length == 0) return {Utf8::invalid, start};
    for (size_t i = 1; i < length; ++i) {
      if (start + i == bytes.size()) return {Utf8::cut_off, start};
      const auto byte = static_cast<unsigned char>(bytes[start + i]);
      if (byte < least || byte > most) return {Utf8::invalid, start};
      least = 0x80;
      most = 0xBF;
    }
    start += length;
  }
  return {};
}

}  // namespace tasks::language_model
