// The program as a user calls it, from a build folder made up for it.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

#include "files.hpp"
#include "pty.hpp"
#include "support/text.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    fs::create_directories(source() / "checker");
    fs::create_directories(build() / "bin");
    fs::copy(testing::chapters_folder(), source() / "checker/chapters",
             fs::copy_options::recursive);
    // A link would not do: the program asks the system where it really lies.
    fs::copy_file(CHECKER_PROGRAM, build() / "bin/checker");
    write_file(source() / "sbatch/site.conf", "account = abc\n");
    use_cmake("exit 1");
  }

  fs::path source() const { return folder_.path() / "a project"; }
  fs::path build() const { return source() / "build/cpu"; }

  // A stand-in for cmake --build: a shell script.
  void use_cmake(const std::string& script) const {
    const auto file = build() / "cmake";
    write_file(file, "#!/bin/sh\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
    write_file(build() / "CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL=" + source().string() +
                                               "\nCMAKE_COMMAND:INTERNAL=" + file.string() +
                                               "\nCMAKE_CTEST_COMMAND:INTERNAL=ctest\n");
  }

  // A stand-in for a built trainer.
  void use_program(const std::string& name, const std::string& script) const {
    write_file(build() / "bin" / name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(build() / "bin" / name, fs::perms::owner_all);
  }

  testing::Outcome checker(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), (build() / "bin/checker").string());
    return testing::run_program(arguments);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(CliTest, HelpNamesEveryVerbAndEveryVerbHasHelp) {
  const auto help = checker({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const auto& verb : verbs()) {
    if (verb.summary.empty()) continue;  // not for people
    EXPECT_THAT(help.text, HasSubstr("  " + std::string(verb.name) + " "));
    const auto own = checker({std::string(verb.name), "--help"});
    EXPECT_EQ(own.status, 0) << verb.name;
    EXPECT_THAT(own.text, HasSubstr("./workbook " + std::string(verb.name)));
  }
}

TEST_F(CliTest, TheScriptsHelpNamesTheSameVerbs) {
  const auto help = testing::run_program({PROJECT_FOLDER "/workbook", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const auto& verb : verbs()) {
    if (verb.summary.empty()) continue;
    std::string name(verb.name);
    name.resize(10, ' ');
    EXPECT_THAT(help.text, HasSubstr("  " + name + std::string(verb.summary) + "\n"));
  }
}

TEST_F(CliTest, WrongCommandLinesAreExplained) {
  const auto verb = checker({"rnu"});
  EXPECT_EQ(verb.status, 2);
  EXPECT_EQ(verb.text, "error: Unknown command 'rnu'. Did you mean 'run'? See ./workbook --help\n");
  EXPECT_THAT(checker({"run"}).text, HasSubstr("Which step?"));
  EXPECT_THAT(checker({"run", "99"}).text, HasSubstr("Unknown step: 99. The steps are 01_serial"));
  EXPECT_THAT(checker({"run", "02", "03"}).text, HasSubstr("\"03\" is an extra argument"));
  EXPECT_THAT(checker({"run", "02", "--world", "0"}).text, HasSubstr("between 1 and 64"));
  EXPECT_THAT(checker({"run", "02", "--world", "two"}).text,
              HasSubstr("See ./workbook run --help"));
  EXPECT_THAT(checker({"run", "02", "--worlds", "2"}).text,
              HasSubstr("\"worlds\" does not exist. Did you mean 'world'?"));
  EXPECT_THAT(checker({"hint", "two"}).text, HasSubstr("\"two\" is not a TODO."));
  EXPECT_THAT(checker({"watch", "--once"}).text, HasSubstr("./workbook check does that."));
  EXPECT_THAT(checker({"list", "--frob"}).text, HasSubstr("\"frob\" does not exist"));
}

TEST_F(CliTest, NothingIsColouredOutsideATerminal) {
  for (const auto& arguments : {"--help", "list", "progress", "hint", "site", "rnu"}) {
    EXPECT_THAT(checker({arguments}).text, Not(HasSubstr("\033"))) << arguments;
  }
}

TEST_F(CliTest, ListShowsStepsAndTodos) {
  const auto list = checker({"list"});
  EXPECT_THAT(list.text, HasSubstr("02_setup"));
  EXPECT_THAT(list.text,
              HasSubstr(" TODO 3   Call setup()  (steps/02_setup/train.cpp is not there)\n"));
}

TEST_F(CliTest, SlidesSaysWhereTheSlideOfATodoIs) {
  const auto slides = [this](const std::string& todo) {
    return testing::run_program({(build() / "bin/checker").string(), "slides", todo},
                                {"DISPLAY=", "WAYLAND_DISPLAY="});
  };
  EXPECT_THAT(slides("8").text, HasSubstr("Fix: ./workbook slides --build-only"));
  // A stand-in for what builds the slides: called with build.py --output FOLDER --build-only.
  const auto python = source() / ".venv/bin/python3";
  write_file(python,
             "#!/bin/sh\nmkdir -p \"$3/site\"\necho '8 decks/4_ddp.html#/todo-8' "
             ">\"$3/site/todos.txt\"\necho again >>\"$3/times\"\n");
  fs::permissions(python, fs::perms::owner_all);
  const auto found = slides("8");
  EXPECT_EQ(found.status, 0);
  EXPECT_THAT(found.text, HasSubstr("TODO 8's slide: file:///"));
  EXPECT_THAT(found.text,
              HasSubstr("/a%20project/build/cpu/slides/site/decks/4_ddp.html#/todo-8\n"));
  EXPECT_THAT(slides("9").text, HasSubstr("No slide is about TODO 9."));
  const auto times = build() / "slides" / "times";
  EXPECT_EQ(read_file(times), "again\n") << "built though nothing changed";
  write_file(source() / "slides/decks/4_ddp.md", "changed");
  EXPECT_EQ(slides("8").status, 0);
  EXPECT_EQ(read_file(times), "again\nagain\n") << "not built though a deck changed";
  EXPECT_EQ(slides("99").status, 2);
}

TEST_F(CliTest, SitePrintsExports) {
  EXPECT_EQ(checker({"site"}).text, "export SBATCH_ACCOUNT='abc'\n");
  write_file(source() / "sbatch/site.conf", "gres = gpu:4\n");
  EXPECT_THAT(checker({"site"}).text, HasSubstr("sbatch/site.conf:1: gres cannot be set here"));
}

TEST_F(CliTest, RenderThenCheckThenEdit) {
  EXPECT_EQ(checker({"render", "--check"}).status, 1);
  EXPECT_EQ(checker({"render"}).status, 0);
  EXPECT_EQ(checker({"render", "--check"}).status, 0);
  write_file(source() / "steps/02_setup/train.cpp", "mine\n");
  const auto check = checker({"render", "--check"});
  EXPECT_EQ(check.status, 1);
  EXPECT_THAT(check.text, HasSubstr("steps/02_setup/train.cpp: differs\n"));
  EXPECT_THAT(checker({"render"}).text,
              HasSubstr("had edits; saved as steps/02_setup/train.cpp.before-update"));
  EXPECT_EQ(read_file(source() / "steps/02_setup/train.cpp.before-update"), "mine\n");
}

TEST_F(CliTest, RunLabelsRanksAndPassesOptionsOn) {
  use_cmake(
      "echo \"$@\" >"
      "'" +
      (build() / "asked").string() + "'");
  use_program("solution_02", "echo rank $RANK of $WORLD_SIZE: \"$@\"");
  const auto run = checker({"run", "2", "--solution", "--world", "2", "--", "--max-steps", "3"});
  EXPECT_EQ(run.status, 0) << run.text;
  const auto output = " --output " + (build() / "runs/02_setup-solution").string() + "\n";
  EXPECT_THAT(run.text, HasSubstr("[rank 0] rank 0 of 2: --monitor --max-steps 3" + output));
  EXPECT_THAT(run.text, HasSubstr("[rank 1] rank 1 of 2: --monitor --max-steps 3" + output));
  EXPECT_TRUE(fs::is_directory(build() / "runs/02_setup-solution"));
  EXPECT_THAT(read_file(build() / "asked"), ::testing::ContainsRegex("--target solution_02\n"));
}

TEST_F(CliTest, RunLeavesAnOutputOfTheUsersAlone) {
  use_cmake("exit 0");
  use_program("step_02", "echo \"$@\"");
  EXPECT_THAT(checker({"run", "02", "--", "--output=x"}).text,
              HasSubstr("\n--monitor --output=x\n"));
}

TEST_F(CliTest, RunSaysWhereTheTrainersOptionsStand) {
  const auto run = checker({"run", "2", "--max-steps", "5", "--world", "2"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.text, HasSubstr("\"max-steps\" does not exist. Put options of the trainer after "
                                  "--: ./workbook run 2 --world 2 -- --max-steps 5."));
}

TEST_F(CliTest, TheFirstOfSeveralRanksDrawsItsBarOnTheTerminal) {
  use_cmake("exit 0");
  use_program("step_02",
              "if [ -t 2 ]; then printf 'bar of %s' $RANK >&2; fi; echo line; echo wrong >&2");
  testing::Terminal terminal(24, 80);
  terminal.run([&] {
    const auto program = (build() / "bin/checker").string();
    return std::system(("TERM=xterm '" + program + "' run 02 --world 2").c_str());
  });
  EXPECT_EQ(terminal.end(), 0);
  const auto shown = terminal.wait_for("line");
  EXPECT_THAT(shown, HasSubstr("bar of 0"));
  EXPECT_THAT(shown, Not(HasSubstr("bar of 1")));
  EXPECT_THAT(shown, HasSubstr("\r\x1b[K")) << "what ranks say wipes the bar off first";
  use_program("step_02", "echo line");
  EXPECT_THAT(checker({"run", "02", "--world", "2"}).text, Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, RunSaysWhichRankFailed) {
  use_cmake("exit 0");
  use_program("step_03", "[ $RANK = 1 ] && exit 7; sleep 60");
  const auto run = checker({"run", "03", "--world", "3"});
  EXPECT_EQ(run.status, 7);
  EXPECT_THAT(run.text, HasSubstr("error: rank 1 failed: exit status 7. Stopped the other ranks"));
}

TEST_F(CliTest, RunWithoutBuildingNeedsNoCompiler) {
  use_cmake("exit 1");
  EXPECT_THAT(checker({"run", "04", "--no-build"}).text, HasSubstr("step_04 does not exist. Fix:"));
  use_program("step_04", "echo it runs");
  EXPECT_THAT(checker({"run", "04", "--no-build"}).text, HasSubstr("it runs"));
}

TEST_F(CliTest, RanksMeetAtAFileThatIsGoneAfterwards) {
  use_cmake("exit 0");
  use_program("step_02",
              "echo $INIT_METHOD; f=${INIT_METHOD#file://}; [ ! -e \"$f\" ] && : >\"$f\"");
  const auto run = checker({"run", "02"});
  EXPECT_EQ(run.status, 0) << run.text;
  const auto at = run.text.find("file://");
  ASSERT_NE(at, run.text.npos);
  const auto store = run.text.substr(at + 7, run.text.find('\n', at) - at - 7);
  EXPECT_FALSE(fs::exists(fs::path(store).parent_path()));
}

TEST_F(CliTest, ABrokenBuildShowsTheCompilersWords) {
  use_cmake(
      "echo '[1/2] Building'; echo 'FAILED: x.o'; echo command; echo 'x.cpp:1: error: oh'; exit 1");
  const auto run = checker({"run", "02"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.text, HasSubstr("\nx.cpp:1: error: oh\nerror: Building step_02 failed"));
  EXPECT_THAT(run.text, Not(HasSubstr("command\n")));
}

TEST_F(CliTest, StartTrainsOnceAndSaysWhatIsNext) {
  use_cmake("exit 0");
  use_program("step_01", "echo best validation loss: 4.5; echo trained >>\"$0.count\"");
  const auto first = checker({"start"});
  EXPECT_EQ(first.status, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("best validation loss: 4.5\n"));
  EXPECT_THAT(first.text, HasSubstr("Next is TODO 1, Include distributed_utils"));
  EXPECT_THAT(first.text, HasSubstr("steps/02_setup/train.cpp"));
  EXPECT_THAT(first.text, HasSubstr("./workbook run 02 --world 2"));
  const auto count = build() / "bin/step_01.count";
  const auto second = checker({"start"});
  EXPECT_THAT(second.text, HasSubstr("already done"));
  EXPECT_THAT(second.text, HasSubstr("best validation loss: 4.5\n"));
  EXPECT_EQ(read_file(count), "trained\n");
  checker({"start", "--again"});
  EXPECT_EQ(read_file(count), "trained\ntrained\n");
  checker({"start", "--", "--seed", "1"});
  EXPECT_EQ(read_file(count), "trained\ntrained\ntrained\n") << "other options are another run";
}

TEST_F(CliTest, StartNoticesThatAnotherRunReplacedItsModel) {
  use_cmake("exit 0");
  use_program("step_01", "echo trained >>\"$0.count\"");
  checker({"start"});
  const auto model = build() / "runs/01_serial/model-final.pt";
  write_file(model, "another");
  fs::last_write_time(model, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  checker({"start"});
  EXPECT_EQ(read_file(build() / "bin/step_01.count"), "trained\ntrained\n");
}

TEST_F(CliTest, ABuildWithNothingToDoSaysNothing) {
  use_cmake("echo 'ninja: no work to do.'");
  use_program("step_02", "echo hello");
  EXPECT_EQ(checker({"run", "02"}).text, "hello\n");
}

TEST_F(CliTest, AStartThatFailedIsNotTakenForDone) {
  use_cmake("exit 0");
  use_program("step_01", "echo half; exit 9");
  EXPECT_EQ(checker({"start"}).status, 9);
  const auto again = checker({"start"});
  EXPECT_EQ(again.status, 9);
  EXPECT_THAT(again.text, Not(HasSubstr("already done")));
}

TEST_F(CliTest, AProgramOutsideABuildFolderSaysSo) {
  fs::remove(build() / "CMakeCache.txt");
  EXPECT_THAT(checker({"list"}).text, HasSubstr("is not in a build folder. Fix: "));
}

TEST_F(CliTest, VerifyPrintsWhatItWouldJudge) {
  const auto wrong = checker({"verify", "--print", "--todo", "9", "set_epoch_missing"});
  EXPECT_EQ(wrong.status, 0);
  EXPECT_THAT(wrong.text, ::testing::StartsWith("// Solution of step 04: "));
  EXPECT_THAT(wrong.text, Not(HasSubstr("set_epoch")));
  EXPECT_THAT(wrong.text, ::testing::EndsWith("  return tasks::report(error);\n}\n"));
  const auto none = checker({"verify", "--print", "--todo", "8", "set_epoch_missing"});
  EXPECT_NE(none.status, 0);
  EXPECT_THAT(none.text, HasSubstr("No entry of the catalogue matches."));
}

}  // namespace
}  // namespace checker
