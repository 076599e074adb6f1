#include "piece_model.hpp"

#include <cstdint>
#include <optional>

namespace tasks::summaries {
namespace {

// Numbers of the message's fields.
constexpr uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3, kSelfTest = 4, kDenormalizer = 5;
constexpr uint64_t kFirstExtension = 200;
constexpr uint64_t kVocabularySize = 4;  // of a trainer
constexpr uint64_t kCharacterMap = 2;    // of a normalizer

// A field: a number, or bytes.
struct Field {
  uint64_t id = 0, number = 0;
  std::string_view bytes;
};

// A protocol buffer's fields, one after the other.
class Message {
 public:
  explicit Message(std::string_view rest) : rest_(rest) {}

  bool at_end() const { return rest_.empty(); }

  /// Nothing for bytes that are not a field.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag) return {};
    Field field{.id = *tag >> 3, .number = 0, .bytes = {}};
    auto length = std::optional<uint64_t>(0);
    switch (*tag & 7) {
      case 0: {
        const auto number = varint();
        if (!number) return {};
        field.number = *number;
        break;
      }
      case 1:
        length = 8;
        break;
      case 2:
        length = varint();
        break;
      case 5:
        length = 4;
        break;
      default:
        return {};
    }
    if (!length || *length > rest_.size()) return {};
    field.bytes = rest_.substr(0, *length);
    rest_.remove_prefix(*length);
    return field;
  }

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return {};
  }

  std::string_view rest_;
};

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return word;
}

// A table of words and texts, by which letters are replaced: the length of the words in bytes, the
// words, and the texts, each with a zero at its end. The words are a double array (Darts-clone,
// https://github.com/s-yata/darts-clone): a word leads to others at its place XOR an offset XOR the
// next letter, and to the place of its text. Whoever follows it does not look whether that is
// inside.
bool is_sound_map(std::string_view map) {
  if (map.empty()) return true;
  if (map.size() < 4) return false;
  const size_t length = word_at(map, 0);
  if (length == 0 || length % 4 != 0 || length >= map.size() - 4) return false;
  const auto words = map.substr(4, length);
  const auto texts = map.substr(4 + length);
  if (texts.back() != '\0') return false;
  constexpr uint32_t kIsText = uint32_t{1} << 31, kHasText = 1 << 8, kFar = 1 << 9;
  const size_t count = length / 4;
  for (size_t i = 0; i < count; ++i) {
    const auto word = word_at(words, 4 * i);
    if ((word & kIsText) != 0) continue;
    const auto offset = static_cast<size_t>(word >> 10) << ((word & kFar) == 0 ? 0 : 8);
    const auto next = i ^ offset;
    if ((next | 0xFF) >= count) return false;
    if ((word & kHasText) == 0) continue;
    const auto text = word_at(words, 4 * next);
    if ((text & kIsText) == 0 || (text & ~kIsText) >= texts.size()) return false;
  }
  return true;
}

// The last field of that number in a message, which is whole.
std::optional<Field> field_of(std::string_view bytes, uint64_t id, bool& whole) {
  std::optional<Field> found;
  for (Message message(bytes); whole && !message.at_end();) {
    const auto field = message.next();
    whole = field.has_value();
    if (whole && field->id == id) found = field;
  }
  return found;
}

}  // namespace

std::string what_is_wrong(std::string_view model) {
  uint64_t pieces = 0;
  std::optional<uint64_t> named;
  bool has_normalizer = false, whole = true;
  for (Message message(model); !message.at_end();) {
    const auto field = message.next();
    if (!field) return "its fields are longer than the file";
    if (field->id == kPieces) {
      ++pieces;
      field_of(field->bytes, 0, whole);
    } else if (field->id == kTrainer) {
      if (const auto size = field_of(field->bytes, kVocabularySize, whole)) named = size->number;
    } else if (field->id == kNormalizer || field->id == kDenormalizer) {
      has_normalizer = has_normalizer || field->id == kNormalizer;
      const auto map = field_of(field->bytes, kCharacterMap, whole);
      if (map && !is_sound_map(map->bytes)) return "its map of letters is damaged";
    } else if (field->id != kSelfTest && field->id < kFirstExtension) {
      return "it has an unknown field";
    }
    if (!whole) return "one of its fields is not a message";
  }
  if (pieces == 0) return "it has no pieces";
  if (!named || !has_normalizer) return "it ends too early";
  if (pieces < *named) {
    return "it has " + std::to_string(pieces) + " pieces of " + std::to_string(*named);
  }
  return {};
}

}  // namespace tasks::summaries
