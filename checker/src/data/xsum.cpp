#include "data/xsum.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>

#include "data/archive_files.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr std::string_view kMark = "[SN]";
constexpr std::array<const char*, 3> kSplits{"train", "validation", "test"};

bool is_for_sharing(std::string_view line) {
  static const std::set<std::string_view> lines{
      "Share this with",
      "Email",
      "Facebook",
      "Messenger",
      "Twitter",
      "Pinterest",
      "WhatsApp",
      "Linkedin",
      "LinkedIn",
      "Copy this link",
      "These are external links and will open in a new window"};
  return lines.contains(line);
}

std::vector<std::string> parts_between_marks(const std::string& text) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t end = 0; end != std::string::npos; at = end + kMark.size()) {
    end = text.find(kMark, at);
    parts.emplace_back(trim(std::string_view(text).substr(at, end - at)));
  }
  return parts;
}

// From an article's id to its split.
std::unordered_map<std::string, size_t> read_splits(const fs::path& file) try {
  const auto lists = json::parse(read_file(file));
  std::unordered_map<std::string, size_t> splits;
  for (size_t split = 0; split < kSplits.size(); ++split) {
    for (const auto& id : lists.at(kSplits.at(split))) splits[id.get<std::string>()] = split;
  }
  return splits;
} catch (const json::exception& error) {
  throw Error(file.string() + ": It does not list the splits (" + error.what() +
              "). Fix: remove this file and run the same command.");
}

std::string all_of(const NextBytes& next) {
  std::string text;
  for (auto bytes = next(); !bytes.empty(); bytes = next()) text += bytes;
  return text;
}

std::string to_line(const std::string& id, const Article& article) try {
  const json line{{"document", article.document}, {"summary", article.summary}, {"id", id}};
  return line.dump() + "\n";
} catch (const json::exception&) {
  throw Error("it is not UTF-8");
}

class Writer {
 public:
  explicit Writer(const fs::path& folder) {
    for (const auto* split : kSplits) {
      files_.push_back(folder / (std::string(split) + ".jsonl"));
      streams_.emplace_back(files_.back(), std::ios::binary);
    }
  }

  void write(size_t split, const std::string& line) {
    if (!(streams_.at(split) << line)) fail(split);
  }

  void close() {
    for (size_t split = 0; split < streams_.size(); ++split) {
      streams_[split].close();
      if (!streams_[split]) fail(split);
    }
  }

 private:
  [[noreturn]] void fail(size_t split) const {
    throw Error(files_.at(split).string() + ": Cannot write it (" +
                std::generic_category().message(errno) +
                "). Fix: free some space and run the same command.");
  }

  std::vector<fs::path> files_;
  std::vector<std::ofstream> streams_;
};

}  // namespace

Article read_article(std::string_view text) {
  std::string kept;
  for (const auto& line : split_lines(text)) {
    if (!trim(line).empty() && !is_for_sharing(line)) kept += line + "\n";
  }
  // [SN]URL[SN] one [SN]TITLE[SN] two [SN]FIRST-SENTENCE[SN] three [SN]RESTBODY[SN] four
  auto parts = parts_between_marks(kept);
  if (parts.size() < 9 || parts[5] != "FIRST-SENTENCE" || parts[7] != "RESTBODY") {
    throw Error("it lacks one of the parts URL, TITLE, FIRST-SENTENCE and RESTBODY");
  }
  return {.document = parts[8], .summary = parts[6]};
}

void write_articles(const fs::path& archive, const fs::path& splits, const fs::path& into) {
  auto wanted = read_splits(splits);
  const auto all = wanted.size();
  Writer writer(into);
  for_each_file(archive, [&](const std::string& name, const NextBytes& next) {
    const auto found = wanted.find(fs::path(name).stem().string());
    if (found == wanted.end() || !name.ends_with(".summary")) return;
    std::string line;
    try {
      line = to_line(found->first, read_article(all_of(next)));
    } catch (const Error& error) {
      throw Error(archive.string() + ": In " + name + ", " + error.what() +
                  ". Fix: remove this archive and run the same command.");
    }
    writer.write(found->second, line);
    wanted.erase(found);
  });
  writer.close();
  if (wanted.empty()) return;
  throw Error(archive.string() + ": " + std::to_string(wanted.size()) + " of " +
              std::to_string(all) + " articles are missing, for example " + wanted.begin()->first +
              ". Fix: remove this archive and run the same command.");
}

}  // namespace checker::data
