// A small class is graded, in boxes, by the program itself.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "box_fixture.hpp"
#include "course/course.hpp"
#include "course/render.hpp"
#include "files.hpp"
#include "grade/store.hpp"
#include "process/capture.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> control_groups() {
  const auto listed = testing::run_program(
      {"sh", "-c", "find /sys/fs/cgroup -type d -name 'worldsize-*' 2>/dev/null; true"});
  const auto lines = split_lines(listed.text);
  return {lines.begin(), lines.end()};
}

// "…/worldsize-2062-0" is of process 2062.
bool owner_is_gone(const std::string& group) {
  const auto owner = whole_number(group.substr(group.rfind('/') + sizeof("worldsize-")), 0);
  return ::kill(owner, 0) != 0;
}

class GradeTest : public testing::BoxedTest {
 protected:
  std::string trainer(const std::string& step, Rendering rendering) const {
    return render(course_, testing::trainer_file(), course_.step(step), rendering);
  }
  void hand_in(const std::string& path, const std::string& text) const {
    write_file(folder_.path() / "class" / path, text);
  }
  fs::path output() const { return folder_.path() / "out"; }
  std::vector<std::string> command(std::vector<std::string> more) const {
    std::vector<std::string> all{CHECKER_PROGRAM, "grade", (folder_.path() / "class").string(),
                                 "--output", output().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  json report() const { return json::parse(read_file(output() / "report.json")); }
  // How a TODO of a student stands.
  std::string mark(const json& all, const std::string& student, int todo) const {
    for (const auto& one : all.at("students")) {
      if (one.at("name") != student) continue;
      return one.at("todos").at(std::to_string(todo)).at("mark");
    }
    return "no such student";
  }

  // What this test's gradings have left: workers, mounts, and control groups whose owner is gone.
  std::string left_behind() const {
    auto left = testing::run_program({"sh", "-c",
                                      "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | "
                                      "grep -o \"judge-hand-i[n] $1\"; "
                                      "grep -F \"judgement $1\" /proc/mounts",
                                      "sh", folder_.path().string()})
                    .text;
    for (const auto& group : control_groups()) {
      if (!groups_before_.contains(group) && owner_is_gone(group)) left += group + "\n";
    }
    return left;
  }

 private:
  const std::set<std::string> groups_before_ = control_groups();  ///< of others, or of earlier days

 protected:
  const Course course_ = load_course(testing::chapters_folder());
};

TEST_F(GradeTest, EachGetsHisOwnVerdictAndNothingIsLeft) {
  const std::string step = "02_setup";
  hand_in("alice/steps/02_setup/train.cpp", trainer(step, Rendering::solution));
  hand_in("bob/steps/02_setup/train.cpp", trainer(step, Rendering::step));
  hand_in("carol/02.cpp", "int main() { return nonsense; }\n");
  hand_in("dave.zip", "no archive at all");
  hand_in("notes.txt", "not a hand-in");
  write_file(folder_.path() / "scheme.yaml", "students: [alice, erin]\npoints: {TODO 1: 4}\n");
  const auto ran = testing::run_program(
      command({"--scheme", (folder_.path() / "scheme.yaml").string()}), {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("not a hand-in: notes.txt"));
  const auto all = report();
  EXPECT_EQ(mark(all, "alice", 3), "done") << ran.text;
  EXPECT_EQ(mark(all, "alice", 4), "missing");
  EXPECT_EQ(mark(all, "bob", 3), "open");
  EXPECT_EQ(mark(all, "carol", 3), "waits");
  EXPECT_EQ(mark(all, "dave", 3), "missing");
  EXPECT_TRUE(all.at("students").at(4).at("absent"));
  EXPECT_EQ(all.at("students").at(0).at("points"), 6);
  EXPECT_THAT(all.dump(), HasSubstr("use of undeclared identifier"));
  EXPECT_THAT(read_file(output() / "report.csv"), HasSubstr("\"dave\",0,"));
  EXPECT_EQ(left_behind(), "");
  const auto again = testing::run_program(command({}));
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.text, HasSubstr("--resume"));
}

// What a student packs is what is graded.
TEST_F(GradeTest, APackedCourseIsReadAgain) {
  fs::create_directories(folder_.path() / "class");
  const auto packed = testing::run_program(
      {CHECKER_PROGRAM, "pack", "--output", (folder_.path() / "class" / "alice.tar.gz").string()});
  EXPECT_EQ(packed.status, 0) << packed.text;
  const auto ran = testing::run_program(command({}));
  EXPECT_EQ(ran.status, 0) << ran.text;
  const auto alice = report().at("students").at(0);
  EXPECT_EQ(alice.at("name"), "alice");
  EXPECT_EQ(alice.at("course"), report().at("course"));
  for (const auto& [todo, entry] : alice.at("todos").items()) {
    EXPECT_NE(entry.at("mark"), "missing") << todo;
  }
}

// The checker is killed while it grades, and then goes on where it was.
TEST_F(GradeTest, WhatIsJudgedIsNotJudgedAgainAfterAKill) {
  hand_in("alice/02.cpp", "int main() { return nonsense; }\n");
  hand_in("bob/02.cpp", "int main() { return other_nonsense; }\n");
  hand_in("carol/02.cpp", trainer("02_setup", Rendering::solution));
  const pid_t grading = ::fork();
  if (grading == 0) {
    auto words = command({"-j", "1"});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  const auto database = output() / "results.db";
  const auto judged = [&] {
    if (!fs::exists(database)) return false;
    const auto stored = grade::Store(database).find("bob");
    return stored && stored->finished;
  };
  const auto end = std::chrono::steady_clock::now() + 120s;
  while (!judged() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(20ms);
  ::kill(grading, SIGKILL);
  ::waitpid(grading, nullptr, 0);
  ASSERT_TRUE(judged());
  const auto before = grade::Store(database).find("bob")->reports.at(0).build_seconds;
  EXPECT_FALSE(grade::Store(database).find("carol") &&
               grade::Store(database).find("carol")->finished);

  const auto resumed = testing::run_program(command({"--resume"}), {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(mark(report(), "carol", 3), "done") << resumed.text;
  EXPECT_EQ(grade::Store(database).find("bob")->reports.at(0).build_seconds, before);
  EXPECT_EQ(left_behind(), "");
  EXPECT_FALSE(fs::exists(output() / "work"));
}

}  // namespace
}  // namespace checker
