#include "judge/bundle.hpp"

#include <algorithm>
#include <set>

#include "support/text.hpp"

namespace checker {

namespace {

bool is_include(std::string_view line) { return trim(line).starts_with("#include"); }

bool reaches_beyond(std::string_view line) {
  if (trim(line).starts_with("#")) return !is_include(line);
  if (line.find("extern \"C\"") != line.npos || line.find("operator new") != line.npos) return true;
  const bool indented = line.empty() || line.front() == ' ' || line.front() == '}';
  if (indented || line.starts_with("//") || line.starts_with("using ")) return false;
  if (line.starts_with("namespace ")) {
    const bool alias = line.find('=') != line.npos, unnamed = line.starts_with("namespace {");
    return !alias && !unnamed;
  }
  return line.ends_with(';') || line.find(" = ") != line.npos;
}

}  // namespace

bool fits_a_bundle(const std::string& text) {
  const auto lines = split_lines(text);
  // A main() outside of main's own namespace does not return 0 by itself.
  return text.find("return 0;") != text.npos && std::ranges::none_of(lines, reaches_beyond);
}

std::string bundle_of(std::span<const std::filesystem::path> sources,
                      std::span<const std::string> texts, const std::filesystem::path& served) {
  std::set<std::string> includes{"#include <cstdio>", "#include <string_view>",
                                 "#include \"" + served.string() + "\""};
  for (const auto& text : texts) {
    for (const auto& line : split_lines(text)) {
      if (is_include(line)) includes.insert(line);
    }
  }
  std::string source, choices;
  for (const auto& include : includes) source += include + "\n";
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto name = "program_" + std::to_string(i);
    const auto folder = sources[i].parent_path().filename().string();
    source += "namespace " + name + " {\n#include \"" + sources[i].string() + "\"\n}\n";
    choices += "  if (path.ends_with(\"/" + folder + "/train\")) return call(" + name +
               "::main, count, words);\n";
  }
  return source +
         "[[maybe_unused]] static int call(int (*main)(int, char**), int count, char** words) {\n"
         "  return main(count, words);\n}\n"
         "[[maybe_unused]] static int call(int (*main)(), int, char**) { return main(); }\n"
         "static int chosen(int count, char** words) {\n  const std::string_view path = "
         "words[0];\n" +
         choices + "  std::fputs(\"error: this bundle holds no such program\\n\", stderr);\n" +
         "  return 64;\n}\n" +
         "int main(int count, char** words) { return checker::run_or_serve(count, words, chosen); "
         "}\n";
}

}  // namespace checker
