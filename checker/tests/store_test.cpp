// Results outlive a kill at any moment.
#include "grade/store.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "files.hpp"
#include "student.hpp"
#include "support/files.hpp"

namespace checker::grade {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Report report_on(const std::string& step) {
  Report report;
  report.step = step;
  report.verdicts = {testing::verdict(8, State::done)};
  return report;
}

TEST(Store, GivesBackWhatItWasGiven) {
  const TemporaryFolder folder;
  const std::string name("a\nb\xff", 4);
  {
    Store store(folder.path() / "results.db");
    EXPECT_TRUE(store.empty());
    store.set("course", "1");
    store.begin(name, "stamp");
    store.gathered(name, {.remarks = {"one", "two"}, .version = "0.1"});
    store.add(name, report_on("04_ddp"));
  }
  Store again(folder.path() / "results.db");
  EXPECT_EQ(again.setting("course"), "1");
  EXPECT_EQ(again.setting("other"), std::nullopt);
  const auto stored = again.find(name);
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->finished);
  EXPECT_EQ(stored->stamp, "stamp");
  EXPECT_THAT(stored->remarks, ElementsAre("one", "two"));
  ASSERT_EQ(stored->reports.size(), 1U);
  EXPECT_EQ(stored->reports[0].step, "04_ddp");
  EXPECT_FALSE(again.find("a\nb"));
  again.finish(name, "a problem");
  EXPECT_TRUE(again.find(name)->finished);
  EXPECT_EQ(again.find(name)->problem, "a problem");
}

TEST(Store, BeginningAnewForgetsTheOldReports) {
  const TemporaryFolder folder;
  Store store(folder.path() / "results.db");
  store.begin("alice", "old");
  store.add("alice", report_on("04_ddp"));
  store.finish("alice", "");
  store.begin("alice", "new");
  const auto stored = store.find("alice");
  EXPECT_EQ(stored->stamp, "new");
  EXPECT_FALSE(stored->finished);
  EXPECT_TRUE(stored->reports.empty());
}

TEST(Store, RefusesWhatIsNoneOfItsFiles) {
  const TemporaryFolder folder;
  write_file(folder.path() / "results.db", "a letter to the dean, of some length");
  EXPECT_THAT(testing::error_of([&] { Store store(folder.path() / "results.db"); }),
              HasSubstr("Fix: choose another folder with --output"));
}

// A child adds reports and is killed at some moment; what it had said to be stored is there.
TEST(Store, LosesNothingThatWasStoredBeforeAKill) {
  for (int trial = 0; trial < 10; ++trial) {
    const TemporaryFolder folder;
    const auto file = folder.path() / "results.db";
    int said[2];
    ASSERT_EQ(::pipe(said), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Store store(file);
      store.begin("alice", "s");
      for (char i = 0; i < 100; ++i) {
        store.add("alice", report_on("step " + std::to_string(i)));
        if (::write(said[1], &i, 1) != 1) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(said[1]);
    char last = -1;
    for (int i = 0; i <= trial * 7; ++i) {
      if (::read(said[0], &last, 1) != 1) break;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(said[0], &last, 1) == 1) {
    }
    ::close(said[0]);
    const auto stored = Store(file).find("alice");
    ASSERT_TRUE(stored);
    EXPECT_GE(stored->reports.size(), static_cast<size_t>(last) + 1);
  }
}

}  // namespace
}  // namespace checker::grade
