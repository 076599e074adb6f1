// A run that is forked from a loaded program is the run that would have been started.
#include "process/fork_server.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

struct Seen {
  GroupResult result;
  std::vector<std::string> lines;
};

class ForkServerTest : public ::testing::Test {
 protected:
  Command command(std::vector<std::string> words) {
    words.insert(words.begin(), SERVED_PROGRAM);
    Command made;
    made.arguments = std::move(words);
    made.environment = {"FROM_COMMAND=a b"};
    made.directory = folder_.path();
    return made;
  }

  static Seen run(const Command& command) {
    Seen seen;
    RankOptions options;
    options.on_line = [&](size_t, bool is_error, std::string_view line) {
      seen.lines.push_back((is_error ? "E " : "O ") + std::string(line));
      return true;
    };
    seen.result = run_ranks({&command, 1}, options);
    std::ranges::sort(seen.lines);
    return seen;
  }

  // Runs it both ways.
  Seen same(Command command) {
    const auto started = run(command);
    command.server = servers_.of(SERVED_PROGRAM);
    const auto forked = run(command);
    EXPECT_EQ(forked.lines, started.lines);
    EXPECT_EQ(forked.result.status(), started.result.status());
    EXPECT_EQ(forked.result.ranks[0].exit.describe(), started.result.ranks[0].exit.describe());
    return forked;
  }

  void SetUp() override {
    ::setenv("FROM_BEFORE", "yes", 1);
    servers_.add(SERVED_PROGRAM);
  }

  const TemporaryFolder folder_;
  ForkServers servers_{{}};
};

TEST_F(ForkServerTest, GetsArgumentsEnvironmentAndBothOutputs) {
  const auto seen = same(command({"speak", "", "two words"}));
  EXPECT_THAT(seen.lines, ::testing::UnorderedElementsAre("E and complains", "O handled",
                                                          std::string("O ") + SERVED_PROGRAM +
                                                              "  two words FROM_BEFORE=yes "
                                                              "FROM_COMMAND=a b"));
}

TEST_F(ForkServerTest, StandsInItsFolderInAGroupOfItsOwnWithoutInput) {
  const auto seen = same(command({"stand"}));
  EXPECT_THAT(seen.lines,
              ::testing::ElementsAre("O " + std::filesystem::canonical(folder_.path()).string() +
                                     " leads no input"));
}

TEST_F(ForkServerTest, EndsAsItWould) {
  EXPECT_EQ(same(command({"fail"})).result.ranks[0].exit.code, 7);
  EXPECT_EQ(same(command({"crash"})).result.ranks[0].exit.signal, SIGABRT);
  auto limited = command({"write"});
  limited.largest_file = 1000;
  EXPECT_EQ(same(limited).result.ranks[0].exit.signal, SIGXFSZ);
}

TEST_F(ForkServerTest, ServesOnAfterARunThatWasEnded) {
  auto waiting = command({"wait"});
  waiting.server = servers_.of(SERVED_PROGRAM);
  RankOptions options;
  options.on_line = [](size_t, bool, std::string_view) { return true; };
  options.stop = [](size_t) { return true; };
  EXPECT_TRUE(run_ranks({&waiting, 1}, options).stopped);
  EXPECT_EQ(same(command({"fail"})).result.ranks[0].exit.code, 7);
}

TEST_F(ForkServerTest, RunsSeveralSideBySide) {
  std::vector<Command> commands(3, command({"speak"}));
  size_t number = 0;
  for (auto& command : commands) {
    command.arguments.push_back(std::to_string(number++));
    command.server = servers_.of(SERVED_PROGRAM);
  }
  std::vector<std::string> said(commands.size());
  RankOptions options;
  options.on_line = [&](size_t rank, bool is_error, std::string_view line) {
    if (!is_error && line != "handled") said[rank] = line;
    return true;
  };
  EXPECT_TRUE(run_ranks(commands, options).success());
  for (size_t i = 0; i < said.size(); ++i) {
    EXPECT_THAT(said[i], ::testing::HasSubstr(" " + std::to_string(i) + " ")) << i;
  }
}

TEST_F(ForkServerTest, IsOneForAllNamesOfAFileAndNoneForOthers) {
  const auto other_name = std::filesystem::path(SERVED_PROGRAM).replace_filename("served_again");
  std::filesystem::remove(other_name);
  std::filesystem::create_hard_link(SERVED_PROGRAM, other_name);
  const auto* server = servers_.of(SERVED_PROGRAM);
  EXPECT_NE(server, nullptr);
  EXPECT_EQ(servers_.of(other_name), server);
  EXPECT_EQ(servers_.of("/bin/sh"), nullptr);
  std::filesystem::remove(other_name);
}

TEST_F(ForkServerTest, ThatIsGoneIsAnError) {
  ForkServer gone("/bin/true", {});
  EXPECT_THROW(gone.start(command({"speak"}), -1, -1), Error);
}

}  // namespace
}  // namespace checker
