// Judging on every save, with a judge made up for it, with and without a terminal.
#include "watch/watch.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>

#include "pty.hpp"
#include "student.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "watch/page.hpp"
#include "watch/settled.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }

  // Says that the step's first TODO is wrong as long as its text holds the word "WRONG".
  Judge judge() const {
    return [this](const Course& course, const Step& step, const CheckOptions& options) {
      const auto text = student_.text(student_.trainer(step.name));
      options.on_stage("running");
      if (text.find("SLOW") != text.npos) {
        Command slow;
        slow.arguments = {"sleep", "60"};
        if (run_ranks({&slow, 1}, {}).interrupted_by) throw Error("Interrupted.");
      }
      if (text.find("THROW") != text.npos) throw Error("There is no\ncompiler.");
      if (text.find("CRASH") != text.npos) ::raise(SIGKILL);
      std::vector<Verdict> verdicts;
      if (text.find("WRONG") != text.npos) {
        verdicts.push_back(testing::wrong(step.todos.front(), "It says wrong."));
      }
      return testing::report(course, step.name, verdicts);
    };
  }

  void write(const std::string& text) const { student_.write(student_.trainer("04"), text); }

  // Watches without a terminal for as many verdicts as there are texts; each is saved once the
  // verdict on the one before is remembered.
  std::string watch_saves(const std::vector<std::string>& texts) {
    size_t next = 0;
    std::string seen;
    write(texts[next++]);
    WatchOptions options{.interval = 10ms};
    const auto memory = student_.path("steps/.progress");
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    options.keep_going = [&] {
      if (std::chrono::steady_clock::now() > deadline) return false;
      const auto present = fs::exists(memory) ? read_file(memory) : "";
      if (present.find(fingerprint(texts[next - 1])) == present.npos) return true;
      if (next == texts.size()) return false;
      write(texts[next++]);
      return true;
    };
    return testing::printed([&] {
      status_ =
          watch(student_.project, student_.course, student_.course.step("04"), judge(), options);
    });
  }

  std::function<int()> watching() const {
    return [this] {
      return watch(student_.project, student_.course, student_.course.step("04"), judge(),
                   {.interval = 20ms});
    };
  }

  testing::Student student_;
  int status_ = -1;
};

TEST_F(WatchTest, WithoutATerminalVerdictsAreLines) {
  const auto text = watch_saves({"WRONG\n", "right\n"});
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(text, R"(04_ddp  The ranks train one model

  ✗ TODO 8   Wrap the model in DistributedDataParallel
      It says wrong.

  ✓ TODO 9   Tell the sampler which epoch it is

Saved; checking step 04 again.
04_ddp  The ranks train one model

  ✓ TODO 8   Wrap the model in DistributedDataParallel
  ✓ TODO 9   Tell the sampler which epoch it is

)");
  EXPECT_THAT(student_.text("steps/.progress"), HasSubstr("\"done\""));
  EXPECT_EQ(student_.text(student_.trainer("04")), "right\n") << "nobody else writes there";
}

TEST_F(WatchTest, ASaveWhileTheJudgeWorksStartsItAgain) {
  write("SLOW WRONG\n");
  bool saved = false;
  const auto begin = std::chrono::steady_clock::now();
  const auto text = testing::printed([&] {
    int looks = 0;
    WatchOptions options{.interval = 10ms};
    options.keep_going = [&] {
      if (++looks == 10) write("right\n");
      saved = fs::exists(student_.path("steps/.progress"));
      return !saved && std::chrono::steady_clock::now() - begin < 30s;
    };
    watch(student_.project, student_.course, student_.course.step("04"), judge(), options);
  });
  EXPECT_TRUE(saved);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s) << "the slow one was ended";
  EXPECT_THAT(text, HasSubstr("✓ TODO 8"));
  EXPECT_THAT(text, Not(HasSubstr("It says wrong.")));
}

TEST_F(WatchTest, AJudgeThatFailsOrDiesIsSaidAndTheWatchGoesOn) {
  for (const std::string text : {"THROW\n", "CRASH\n"}) {
    write(text);
    int looks = 0;
    WatchOptions options{.interval = 10ms};
    options.keep_going = [&] { return ++looks < 50; };
    ::testing::internal::CaptureStderr();
    const auto status =
        watch(student_.project, student_.course, student_.course.step("04"), judge(), options);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              text == "THROW\n" ? "error: There is no compiler.\n"
                                : "error: The check ended without a verdict.\n");
  }
}

TEST_F(WatchTest, KeysOnATerminal) {
  write("WRONG\n");
  testing::Terminal terminal(30, 80);
  const auto before = terminal.settings();
  terminal.run(watching());
  terminal.wait_for("TODO 8 is wrong; 1 of 2 done.");
  EXPECT_THAT(terminal.wait_for("quit"), HasSubstr("It says wrong."));
  EXPECT_EQ(terminal.settings().c_lflag & (ICANON | ECHO), 0U);
  terminal.forget();
  terminal.type("h");
  terminal.wait_for("One line changes.");
  terminal.type("h");
  terminal.wait_for("const auto model = Wrapper(...);");
  terminal.type("h");
  terminal.wait_for("Each rank has the gradient of the mean loss");
  terminal.type("d");
  terminal.wait_for("This shows the solution");
  terminal.forget();
  terminal.type("d");
  terminal.wait_for("It says wrong.");
  terminal.type("n");
  terminal.wait_for("steps/05_all_reduce_loss/train.cpp");
  terminal.wait_for("Step 05 is done.");
  terminal.forget();
  terminal.type("pp");
  terminal.wait_for("steps/03_sampler/train.cpp");
  terminal.type("p");
  terminal.wait_for("steps/02_setup/train.cpp");
  terminal.type("p");
  terminal.wait_for("There is no TODO before this step.");
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
  const auto after = terminal.settings();
  EXPECT_EQ(after.c_lflag, before.c_lflag);
  EXPECT_EQ(after.c_cc[VSUSP], before.c_cc[VSUSP]);
  EXPECT_THAT(terminal.wait_for("\033[?25h"), HasSubstr("\033[?7h")) << "the cursor is back";
}

TEST_F(WatchTest, SavesAreSeenOnATerminalToo) {
  write("WRONG\n");
  testing::Terminal terminal(30, 80);
  terminal.run(watching());
  terminal.wait_for("TODO 8 is wrong");
  write("SLOW right\n");
  terminal.wait_for("judging: running ...  This verdict is about an older version of your file.");
  write("right\n");
  terminal.wait_for("Step 04 is done.");
  terminal.type("r");
  terminal.type("q");
  EXPECT_EQ(terminal.end(), 0);
}

TEST_F(WatchTest, SignalsRestoreTheTerminal) {
  write("SLOW\n");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    testing::Terminal terminal(30, 80);
    const auto before = terminal.settings();
    terminal.run(watching());
    terminal.wait_for("judging: running");
    EXPECT_EQ(terminal.settings().c_lflag & ICANON, 0U);
    terminal.signal(signal);
    EXPECT_EQ(terminal.end(), 128 + signal);
    EXPECT_EQ(terminal.settings().c_lflag, before.c_lflag);
    terminal.wait_for("\033[?25h");
  }
}

TEST_F(WatchTest, ControlCEndsItAndTheJudge) {
  write("SLOW\n");
  testing::Terminal terminal(30, 80);
  terminal.run(watching());
  terminal.wait_for("judging: running");
  const auto begin = std::chrono::steady_clock::now();
  terminal.type("\x03");
  EXPECT_EQ(terminal.end(), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s) << "its ranks were ended, not waited for";
}

TEST(SettledFiles, AreThoseThatStoodStill) {
  const Fingerprints first{{"a", "1"}}, second{{"a", "2"}}, third{{"a", "3"}}, gone{{"a", ""}};
  SettledFiles files(first);
  EXPECT_FALSE(files.look(first));
  EXPECT_FALSE(files.look(second)) << "perhaps half of it";
  EXPECT_FALSE(files.look(third));
  EXPECT_TRUE(files.look(third));
  EXPECT_FALSE(files.look(third));
  EXPECT_FALSE(files.look(gone));
  EXPECT_FALSE(files.look(gone)) << "an editor is just replacing it";
  EXPECT_FALSE(files.look(third)) << "nothing has changed";
  EXPECT_EQ(files.texts(), third);
}

TEST(Page, NeverIsLongerThanTheScreen) {
  const testing::Student student;
  View view;
  view.step = &student.course.step("03");
  view.standings = standings(student.project, student.course, {});
  view.pane = Pane::solution;
  const auto page = [&](size_t number) {
    view.page = number;
    return page_lines(view, student.project, student.course, {}, 20);
  };
  EXPECT_EQ(page(0).size(), 20U);
  EXPECT_THAT(join(page(0), "\n"), HasSubstr("page 1 of 4, space for the next"));
  EXPECT_EQ(page(0)[2],
            "This shows the solution: lines with - are yours, lines with + are the reference's.");
  EXPECT_THAT(join(page(3), "\n"), HasSubstr("page 4 of 4"));
  EXPECT_EQ(page(4), page(0));
  view.pane = Pane::verdict;
  EXPECT_LT(page(0).size(), 20U);
}

}  // namespace
}  // namespace checker
