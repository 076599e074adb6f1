#include "files.hpp"

#include "ladder/ladder.hpp"
#include "support/error.hpp"

namespace checker::testing {

namespace fs = std::filesystem;

fs::path project_ladder() { return fs::path(PROJECT_FOLDER) / "checker" / "ladder"; }

const Ladder& ladder() {
  static const Ladder loaded = load_ladder(project_ladder());
  return loaded;
}

LadderCopy::LadderCopy() { fs::copy(project_ladder(), path(), fs::copy_options::recursive); }

void LadderCopy::replace(const std::string& file, const std::string& text,
                         const std::string& by) const {
  auto content = read_file(path() / file);
  const auto at = content.find(text);
  if (at == content.npos) throw Error(file + " does not hold \"" + text + "\"");
  write_file(path() / file, content.replace(at, text.size(), by));
}

Outcome run_program(std::vector<std::string> arguments, std::vector<std::string> environment,
                    const fs::path& directory) {
  const Command command{std::move(arguments), std::move(environment), directory};
  Outcome outcome;
  RankOptions options;
  options.on_line = [&](size_t, bool, std::string_view line) {
    outcome.text.append(line).append("\n");
    return true;
  };
  outcome.status = run_ranks({&command, 1}, options).status();
  return outcome;
}

}  // namespace checker::testing
