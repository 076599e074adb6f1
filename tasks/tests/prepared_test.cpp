// Data that are made once: whole or not there, by however many processes and whoever is killed.
#include "tasks/prepared.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

namespace fs = std::filesystem;

class Prepared : public testing::Test {
 protected:
  Prepared() { setenv("WORLDSIZE_CACHE", cache().c_str(), 1); }
  ~Prepared() override { unsetenv("WORLDSIZE_CACHE"); }

  fs::path cache() const { return folder_.path() / "below" / "cache"; }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(cache()), {}));
  }

  TemporaryFolder folder_;
};

TEST_F(Prepared, IsMadeOnceAndWhole) {
  int made = 0;
  const auto fill = [&](const fs::path& empty) {
    ++made;
    EXPECT_TRUE(fs::is_empty(empty));
    std::ofstream(empty / "file") << "whole";
    EXPECT_FALSE(fs::exists(cache() / "name"));
  };
  const auto folder = prepared("name", fill);
  EXPECT_EQ(folder, cache() / "name");
  EXPECT_EQ(prepared("name", fill), folder);
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(fs::exists(folder / "file"));
  EXPECT_EQ(entries(), 1U);
}

// All are in the middle of it before the first ends, and all find it whole.
TEST_F(Prepared, SeveralProcessesMayWantItAtOnce) {
  constexpr int kProcesses = 4;
  const auto started = folder_.path() / "started";
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    const auto made = prepared("name", [&](const fs::path& empty) {
      std::ofstream(empty / "half") << "1";
      std::ofstream(started, std::ios::app) << "x" << std::flush;
      while (fs::file_size(started) < kProcesses) usleep(1000);
      std::ofstream(empty / "whole") << "2";
    });
    _exit(fs::exists(made / "half") && fs::exists(made / "whole") ? 0 : 1);
  }
  int status = 0, failed = 0;
  while (wait(&status) > 0) failed += status != 0;
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Prepared, WhatAKilledProcessLeftIsClearedAndMadeAnew) {
  const auto child = fork();
  if (child == 0) {
    prepared("name", [](const fs::path& empty) {
      std::ofstream(empty / "half") << "a";
      raise(SIGKILL);
    });
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(cache() / "name"));
  EXPECT_EQ(entries(), 1U);
  const auto folder =
      prepared("name", [](const fs::path& empty) { std::ofstream(empty / "whole") << "b"; });
  EXPECT_TRUE(fs::exists(folder / "whole"));
  EXPECT_FALSE(fs::exists(folder / "half"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Prepared, WhatFailsLeavesNothing) {
  const auto fails = [](const fs::path& empty) {
    std::ofstream(empty / "half") << "1";
    throw Error("the disk is full");
  };
  EXPECT_EQ(error_of([&] { prepared("name", fails); }), "the disk is full");
  EXPECT_EQ(entries(), 0U);
  EXPECT_TRUE(fs::is_directory(prepared("name", [](const fs::path&) {})));
}

TEST_F(Prepared, WhereNothingCanBeWrittenSaysSo) {
  const auto file = folder_.write("file", "no folder");
  setenv("WORLDSIZE_CACHE", file.c_str(), 1);
  EXPECT_THAT(
      error_of([] { prepared("name", [](const fs::path&) {}); }),
      testing::AllOf(testing::HasSubstr(file.string()), testing::HasSubstr("Fix: free some space"),
                     testing::HasSubstr("WORLDSIZE_CACHE=<folder>")));
}

}  // namespace
}  // namespace tasks
