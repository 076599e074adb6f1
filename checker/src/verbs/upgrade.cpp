// Takes a newer version of the course into a clone whose steps a student has edited.
#include <algorithm>

#include "course/update.hpp"
#include "process/capture.hpp"
#include "state/memory.hpp"
#include "state/merge.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// Whose edits are a student's or an instructor's, and are carried over.
bool is_theirs(const std::string& file) {
  return file.starts_with("steps/") || file.starts_with("sbatch/");
}

class Upgrade {
 public:
  explicit Upgrade(const Project& project) : project_(project) {}

  // From what git keeps as the last stash.
  void bring_back() {
    if (!git({"rev-parse", "--verify", "--quiet", "stash@{0}"})) {
      throw Error("git has no stash. Fix: run ./workbook upgrade without --stash.");
    }
    const auto files = split_lines(said({"diff", "--name-only", "stash@{0}^1", "stash@{0}"}));
    size_t brought = 0;
    for (const auto& file : files) {
      if (!is_theirs(file) || file == "steps/.rendered") continue;
      bring_back(file);
      ++brought;
    }
    if (brought == 0) terminal::say("The stash holds no edits of steps/ or sbatch/.");
    terminal::say("Your edits are also still in git's stash; git stash drop removes them there.");
  }

  void run() {
    if (!git({"rev-parse", "--is-inside-work-tree"})) {
      throw Error(
          "This folder is not a git clone. Fix: unpack the new version into a new folder and copy "
          "your steps/ and sbatch/ into it.");
    }
    said({"fetch"});
    const auto old_version = said({"rev-parse", "--short", "HEAD"});
    if (git({"merge-base", "--is-ancestor", "@{upstream}", "HEAD"})) {
      terminal::say("This is the newest version, " + old_version + "; nothing to do.");
      return;
    }
    if (!git({"merge-base", "--is-ancestor", "HEAD", "@{upstream}"})) {
      throw Error("This clone has its own commits. Fix: git pull --rebase, which keeps them.");
    }
    const bool edited = stash();
    said({"merge", "--quiet", "--ff-only", "@{upstream}"});
    terminal::say("From " + old_version + " to " + said({"rev-parse", "--short", "HEAD"}) + ".");
    if (edited) bring_back();
    terminal::say("The next ./workbook command builds the new version.");
  }

 private:
  Captured ask(const std::vector<std::string>& words) const {
    Command command{.arguments = {"git", "-C", project_.source.string()},
                    .environment = {"LC_ALL=C"},
                    .directory = {}};
    command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    return capture(command);
  }

  bool git(const std::vector<std::string>& words) const { return ask(words).success(); }

  std::string said(const std::vector<std::string>& words) const {
    const auto answer = ask(words);
    if (!answer.success()) {
      throw Error("git " + join(words, " ") + " failed: " + std::string(trim(answer.output)));
    }
    return std::string(trim(answer.output));
  }

  // What was edited besides would be in the way, and is nothing that this could merge.
  bool stash() const {
    const auto files = split_lines(said({"diff", "--name-only", "HEAD"}));
    std::vector<std::string> others;
    std::ranges::copy_if(files, std::back_inserter(others),
                         [](const std::string& file) { return !is_theirs(file); });
    if (!others.empty()) {
      throw Error("You have also changed " + join(others, ", ") +
                  ". Fix: git commit or git stash these first. Nothing was changed.");
    }
    if (files.empty()) return false;
    said({"stash", "push", "--quiet", "--message", "before ./workbook upgrade"});
    return true;
  }

  void bring_back(const std::string& file) const {
    const auto edited = text_at("stash@{0}", file), old_text = text_at("stash@{0}^1", file);
    const auto path = project_.source / file;
    if (!fs::exists(path)) {
      const fs::path beside = path.string() + ".before-update";
      write_file(beside, edited);
      terminal::say(file + ": no longer part of the course; your version is saved as " +
                    project_.shown(beside) + ".");
      return;
    }
    const auto merged = merged_by_words(edited, old_text, read_file(path));
    const auto beside = name_beside(path);
    write_file(beside, edited);
    write_file(path, merged);
    follow(project_, file, fingerprint(edited), fingerprint(merged));
    terminal::say(file + ": your edits are in the new version; your old file is saved as " +
                  project_.shown(beside) + ".");
  }

  // Not trimmed, as said() is.
  std::string text_at(const std::string& version, const std::string& file) const {
    const TemporaryFolder folder;
    const auto place = folder.path() / "text";
    const auto answer =
        capture({.arguments = {"sh", "-c", "git -C \"$1\" show \"$2\" > \"$3\"", "sh",
                               project_.source.string(), version + ":" + file, place.string()},
                 .environment = {"LC_ALL=C"},
                 .directory = {}});
    return answer.success() ? read_file(place) : "";
  }

  const Project& project_;
};

}  // namespace

int run_upgrade(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook upgrade",
                           "Takes the newest version of the course and keeps your edits.\n");
  options.add_options()("stash",
                        "Only bring back edits that git stash took away before a git pull");
  const auto parsed = parse(options, "[--stash]",
                            "Your edits of steps/ and sbatch/ move into the new files, word by "
                            "word. Your old files are\nsaved next to them.\n",
                            arguments);
  if (!parsed) return 0;
  Upgrade upgrade(project);
  parsed->count("stash") ? upgrade.bring_back() : upgrade.run();
  return 0;
}

}  // namespace checker
