#include "course/words.hpp"

#include "course/mapping.hpp"
#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

Template read_text(const fs::path& file, const YAML::Node& node) {
  const std::string text(node.IsScalar() ? trim(node.Scalar()) : "");
  if (text.empty()) fail(file, node.Mark(), "a text is expected here.");
  std::string line;
  for (const char c : text) line += c == '\n' ? ' ' : c;
  try {
    return Template(line);
  } catch (const Error& error) {
    fail(file, node.Mark(), error.what());
  }
}

std::map<std::string, Template> read_texts(const fs::path& file, const YAML::Node& node) {
  if (!node.IsMap()) fail(file, node.Mark(), "a mapping (name: text) is expected here.");
  std::map<std::string, Template> texts;
  for (const auto& entry : node) {
    texts[entry.first.as<std::string>()] = read_text(file, entry.second);
  }
  return texts;
}

constexpr const char* kOtherwise = "otherwise";

std::map<std::string, Template> read_variants(const fs::path& file, const YAML::Node& node) {
  if (node.IsScalar()) return {{kOtherwise, read_text(file, node)}};
  auto texts = read_texts(file, node);
  if (!texts.contains(kOtherwise)) fail(file, node.Mark(), "the variant otherwise is missing.");
  return texts;
}

FindingWords read_finding(const fs::path& file, const YAML::Node& node) {
  const Mapping mapping(file, node, {"what", "why", "evidence", "open"});
  return {.what = read_variants(file, mapping.node("what")),
          .why = read_variants(file, mapping.node("why")),
          .evidence = mapping.has("evidence") ? read_texts(file, mapping.node("evidence"))
                                              : std::map<std::string, Template>{},
          .open = mapping.has("open") ? std::optional(read_text(file, mapping.node("open")))
                                      : std::nullopt,
          .place = place_of(file, node.Mark())};
}

}  // namespace

Values values_of(const std::smatch& match) {
  Values values;
  for (size_t i = 1; i < match.size(); ++i) values[std::to_string(i)] = match[i].str();
  return values;
}

void Words::add(const fs::path& file) {
  const Mapping mapping(file, read_yaml(file), {"findings", "lines", "phrases", "messages"});
  for (const auto& entry : mapping.node("findings")) {
    const auto id = entry.first.as<std::string>();
    findings_.emplace(id, read_finding(file, entry.second));
  }
  if (mapping.has("lines")) lines_.merge(read_texts(file, mapping.node("lines")));
  if (mapping.has("phrases")) phrases_.merge(read_texts(file, mapping.node("phrases")));
  if (!mapping.has("messages")) return;
  for (const auto& node : mapping.node("messages")) {
    const Mapping message(file, node, {"says", "means"});
    messages_.push_back({.says = read_regex(file, message.node("says")),
                         .means = read_text(file, message.node("means")),
                         .place = place_of(file, node.Mark())});
  }
}

void Words::add(const Words& others) {
  findings_.insert(others.findings_.begin(), others.findings_.end());
  lines_.insert(others.lines_.begin(), others.lines_.end());
  phrases_.insert(others.phrases_.begin(), others.phrases_.end());
  messages_.insert(messages_.end(), others.messages_.begin(), others.messages_.end());
}

std::vector<std::string> Words::ids() const {
  std::vector<std::string> all;
  for (const auto& [id, words] : findings_) all.push_back(id);
  return all;
}

const FindingWords& Words::of(const std::string& id) const {
  const auto found = findings_.find(id);
  if (found == findings_.end()) {
    throw Error("findings.yaml has no finding " + id + did_you_mean(id, ids()));
  }
  return found->second;
}

std::string Words::fill(const Template& text, Values values, const std::string& place) const try {
  for (auto& [name, value] : values) {
    if (!value.phrase) continue;
    const auto phrase = phrases_.find(value.text);
    if (phrase == phrases_.end()) throw Error("no phrase " + value.text);
    value.text = phrase->second.text();
  }
  return text.fill(values);
} catch (const Error& error) {
  throw Error(place + ": " + error.what());
}

std::string Words::line(const FindingWords& finding, const std::string& name,
                        const Values& values) const {
  const auto own = finding.evidence.find(name);
  if (own != finding.evidence.end()) return fill(own->second, values, finding.place);
  const auto shared = lines_.find(name);
  if (shared == lines_.end()) {
    throw Error(finding.place + ": it has no line of evidence " + name +
                ", and the shared lines have none either.");
  }
  return fill(shared->second, values, finding.place);
}

std::optional<std::string> Words::meaning_of(const std::string& said) const {
  for (const auto& message : messages_) {
    std::smatch match;
    if (std::regex_search(said, match, message.says)) {
      return fill(message.means, values_of(match), message.place);
    }
  }
  return std::nullopt;
}

}  // namespace checker
