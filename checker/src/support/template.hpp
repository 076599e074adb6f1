#pragma once
/// Texts with places for values.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

/// What a place is filled with.
struct Value {
  std::string text;
  size_t count = 1;     ///< of things named, for {name?one:many}
  bool phrase = false;  ///< text is the name of a phrase, which is looked up

  Value() = default;
  Value(std::string value) : text(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Value(const char* value) : text(value) {}             // NOLINT(google-explicit-constructor)
  template <typename Number>
  requires std::is_integral_v<Number> Value(Number value)  // NOLINT(google-explicit-constructor)
      : text(std::to_string(value)), count(static_cast<size_t>(value)) {}
};

using Values = std::map<std::string, Value, std::less<>>;

/// A text in which {name} stands for a value, and {name?word:words} for one of two words, by the
/// value's count. Braces have no other use in it.
class Template {
 public:
  Template() = default;
  /// Throws Error for a brace that is not closed.
  explicit Template(std::string text);

  /// Throws Error naming a place that has no value.
  std::string fill(const Values& values) const;
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace checker
