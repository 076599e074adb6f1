#include "json_lines.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

using nlohmann::json;

constexpr const char* kFix =
    "copy the file again; each line must be one JSON object with the strings \"document\" and "
    "\"summary\"";

// Takes the two strings of one object as the parser comes to them. It builds no tree, so nesting,
// however deep, costs nothing.
class Fields : public nlohmann::json_sax<json> {
 public:
  /// What is wrong with the line; empty if nothing is.
  std::string wrong() const {
    if (!wrong_.empty()) return wrong_;
    if (!is_object_) return "is not a JSON object";
    if (!document_) return "has no \"document\"";
    if (!summary_) return "has no \"summary\"";
    return {};
  }
  Pair pair() { return {std::move(*document_), std::move(*summary_)}; }

  bool string(std::string& text) override {
    auto* const field = wanted();
    if (field == nullptr) return true;
    if (*field) return fails(fmt::format("has \"{}\" twice", key_));
    *field = std::move(text);
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) key_ = std::move(name);
    return true;
  }
  bool start_object(size_t /*elements*/) override {
    if (depth_ == 0) is_object_ = true;
    return opens();
  }
  bool start_array(size_t /*elements*/) override { return opens(); }
  bool end_object() override { return closes(); }
  bool end_array() override { return closes(); }
  bool null() override { return no_string(); }
  bool boolean(bool /*value*/) override { return no_string(); }
  bool number_integer(int64_t /*value*/) override { return no_string(); }
  bool number_unsigned(uint64_t /*value*/) override { return no_string(); }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return no_string(); }
  bool binary(json::binary_t& /*value*/) override { return no_string(); }
  bool parse_error(size_t byte, const std::string& /*token*/,
                   const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ...".
    const std::string_view what = error.what();
    const auto colon = what.find(": ");
    const auto why = colon == std::string_view::npos ? what : what.substr(colon + 2);
    return fails(fmt::format("is not JSON from byte {} on ({})", byte, why.substr(0, 160)));
  }

 private:
  std::optional<std::string>* wanted() {
    if (depth_ != 1) return nullptr;
    return key_ == "document" ? &document_ : key_ == "summary" ? &summary_ : nullptr;
  }
  bool no_string() {
    if (wanted() == nullptr) return true;
    return fails(fmt::format("has a \"{}\" that is not a string", key_));
  }
  bool opens() {
    if (depth_ > 0 && !no_string()) return false;
    ++depth_;
    return true;
  }
  bool closes() {
    --depth_;
    return true;
  }
  bool fails(std::string why) {
    if (wrong_.empty()) wrong_ = std::move(why);
    return false;
  }

  size_t depth_ = 0;
  bool is_object_ = false;
  std::string key_, wrong_;
  std::optional<std::string> document_, summary_;
};

// Reads line by line, and of each no more than may be there.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& file) : file_(file), stream_(file, std::ios::binary) {
    if (!std::filesystem::exists(file)) throw Error(fmt::format("{}: no such file", file.string()));
    if (!std::filesystem::is_regular_file(file) || !stream_) fail("cannot be read as a file");
  }

  /// False at the end of the file.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    for (;;) {
      const auto rest = std::string_view(buffer_).substr(at_);
      const auto end = rest.find('\n');
      line += rest.substr(0, end);
      if (line.size() > kLongestLine) {
        fail(fmt::format("is longer than {} MiB", kLongestLine >> 20));
      }
      if (end != std::string_view::npos) {
        at_ += end + 1;
        return true;
      }
      if (!fill()) return !line.empty();
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    const auto where = number_ == 0 ? "" : fmt::format(":{}: this line", number_);
    throw Error(fmt::format("{}{} {}. Fix: {}.", file_.string(), where, why, kFix));
  }

 private:
  bool fill() {
    buffer_.resize(size_t{1} << 20);
    stream_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.resize(static_cast<size_t>(stream_.gcount()));
    at_ = 0;
    if (stream_.bad()) fail("cannot be read to the end");
    return !buffer_.empty();
  }

  const std::filesystem::path& file_;
  std::ifstream stream_;
  std::string buffer_;
  size_t at_ = 0, number_ = 0;
};

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

void for_each_pair(const std::filesystem::path& file,
                   const std::function<void(const Pair& pair)>& take) {
  Lines lines(file);
  std::string line;
  size_t count = 0;
  for (; lines.next(line); ++count) {
    if (is_blank_line(line)) lines.fail("is blank");
    Fields fields;
    json::sax_parse(line, &fields);
    if (const auto why = fields.wrong(); !why.empty()) lines.fail(why);
    take(fields.pair());
  }
  if (count == 0) throw Error(fmt::format("{}: is empty. Fix: {}.", file.string(), kFix));
}

std::string to_json_line(const Pair& pair, const std::string& id) {
  const json line{{"document", pair.document}, {"summary", pair.summary}, {"id", id}};
  return line.dump() + '\n';
}

}  // namespace tasks::summaries
