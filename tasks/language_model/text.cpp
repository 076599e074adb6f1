#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include "tasks/options.hpp"
#include "utf8.hpp"

namespace tasks::language_model {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::array<const char*, 3>, 2> layouts{{
    {"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"},
    {"train.txt", "valid.txt", "test.txt"},
}};

bool is_blank(char letter) {
  return std::string_view(" \t\r\v\f").find(letter) != std::string::npos;
}

std::string read_bytes(const fs::path& file) {
  if (!fs::is_regular_file(file)) {
    throw Error(fmt::format("{}: no such file; --data needs a folder with all three splits",
                            file.string()));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw Error(fmt::format("{}: cannot be read", file.string()));
  return bytes;
}

void check_text(const std::string& bytes, const fs::path& file) {
  const auto [result, offset] = check_utf8(bytes);
  if (result == Utf8::invalid) {
    throw Error(
        fmt::format("{}: byte {} is not UTF-8 text; --data needs plain text with words separated "
                    "by blanks, not archives or tables",
                    file.string(), offset));
  }
  if (result == Utf8::cut_off || (!bytes.empty() && bytes.back() != '\n')) {
    throw Error(
        fmt::format("{}: ends in the middle of a {}, so it may be cut off; copy it again, or end "
                    "its last line if it is complete",
                    file.string(), result == Utf8::cut_off ? "character" : "line"));
  }
}

void append_words(std::string_view line, std::vector<std::string>& words) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  auto at = line.begin();
  while (true) {
    at = std::find_if_not(at, line.end(), is_blank);
    if (at == line.end()) return;
    const auto end = std::find_if(at, line.end(), is_blank);
    std::transform(at, end, std::back_inserter(words.emplace_back()), lower);
    at = end;
  }
}

}  // namespace

std::vector<std::string> read_words(const fs::path& file) {
  const std::string bytes = read_bytes(file);
  check_text(bytes, file);
  std::vector<std::string> words;
  size_t lines = 0;
  for (size_t start = 0; start < bytes.size(); ++lines) {
    const size_t end = bytes.find('\n', start);
    append_words(std::string_view(bytes).substr(start, end - start), words);
    words.emplace_back(end_of_line);
    start = end + 1;
  }
  if (words.size() == lines) throw Error(fmt::format("{}: holds no words", file.string()));
  return words;
}

Text read_text(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(fmt::format("--data: {} is not a folder", folder.string()));
  }
  for (const auto& [train, validation, test] : layouts) {
    const auto there = [&](const char* name) { return fs::exists(folder / name); };
    if (!there(train) && !there(validation) && !there(test)) continue;
    return {read_words(folder / train), read_words(folder / validation), read_words(folder / test)};
  }
  throw Error(
      fmt::format("--data: {} holds neither wiki.train.tokens, wiki.valid.tokens and "
                  "wiki.test.tokens nor train.txt, valid.txt and test.txt",
                  folder.string()));
}

}  // namespace tasks::language_model
