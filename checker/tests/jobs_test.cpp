// The job scripts, unmodified, under a Slurm of our own, with the trainers of the course.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <map>

#include "course/course.hpp"
#include "endure/endure.hpp"
#include "files.hpp"
#include "jobs/record.hpp"
#include "jobs/site_copy.hpp"
#include "jobs/torchrun.hpp"
#include "lab_fixture.hpp"
#include "monitor/figures.hpp"
#include "monitor/page.hpp"
#include "monitor_browser.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::run_in;

// That of the project's own environment, which jobs are started with.
bool torchrun_works() {
  Project project;
  project.source = PROJECT_FOLDER;
  return !why_own_not_running(project);
}

class JobsTest : public testing::LabTest {
 protected:
  void SetUp() override {
    LabTest::SetUp();
    if (IsSkipped()) return;
    if (!torchrun_works()) {
      GTEST_SKIP() << "no torchrun that works: Python cannot import torch here";
    }
    make_course();
    lab_ = std::make_unique<Lab>(Lab::start({.interface_suffix = "i"}));
  }

  void TearDown() override {
    lab_.reset();
    LabTest::TearDown();
  }

  fs::path course() const { return scratch() / "course"; }

  // Submits a script and returns the job's number.
  std::string submit(const std::string& script, const std::string& options) const {
    return std::string(trim(
        run_in(*lab_, "sbatch --parsable " + script + " --config " + TINY_CONFIG + " " + options,
               course())));
  }

  JobRecord record(const std::string& job) const {
    return parse_job_record(lab_->run({"scontrol", "show", "job", job}).output);
  }

  // Waits for its end; what it wrote.
  std::string output_of(const std::string& job) const {
    wait_until("job " + job + " is over", [&] { return record(job).is_over(); });
    const auto now = record(job);
    const auto text = fs::exists(now.output) ? read_file(now.output) : "";
    EXPECT_EQ(now.state, "COMPLETED") << text;
    return text;
  }

  // The numbers after a phrase.
  static std::vector<double> numbers_after(const std::string& phrase, const std::string& text) {
    std::vector<double> numbers;
    for (size_t at = 0; (at = text.find(phrase, at)) != text.npos; ++at) {
      numbers.push_back(std::stod(text.substr(at + phrase.size())));
    }
    return numbers;
  }

  // What one rank reports, on the same global batch of 16.
  std::string alone(const std::string& options) const {
    const auto said =
        testing::run_program({"sh", "-c",
                              "build/cpu/bin/solution_07 --config " + std::string(TINY_CONFIG) +
                                  " --batch-size 16 --output output/alone " + options},
                             {"OMP_NUM_THREADS=1"}, course());
    EXPECT_EQ(said.status, 0) << said.text;
    return said.text;
  }

  static void expect_same_losses(const std::string& text, const std::string& expected) {
    for (const std::string phrase : {"training loss ", "validation loss "}) {
      const auto got = numbers_after(phrase, text), wanted = numbers_after(phrase, expected);
      ASSERT_FALSE(wanted.empty()) << expected;
      ASSERT_EQ(got.size(), wanted.size()) << text;
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-10 * wanted[i]);
    }
  }

  // Both nodes wrote what they did, and it comes together on one page.
  void expect_monitored(const std::string& job) const {
    const auto recorded = monitor::load_run(course() / "output" / ("07_multi_node-" + job));
    ASSERT_EQ(recorded.ranks.size(), 8U);
    std::map<std::string, int> hosts;
    for (const auto& rank : recorded.ranks) {
      ++hosts[rank.host()];
      EXPECT_EQ(rank.steps.size(), recorded.ranks[0].steps.size());
    }
    EXPECT_EQ(hosts, (std::map<std::string, int>{{"n1", 4}, {"n2", 4}}));
    EXPECT_TRUE(recorded.ended());
    if (!testing::has_browser()) return;
    const auto page = monitor::to_page(recorded, monitor::figures_of(recorded));
    const auto seen = testing::run_seen_by_browser(page, 1280);
    EXPECT_THAT(seen, HasSubstr("rows 8, tip backward"));
    EXPECT_THAT(seen, HasSubstr("overflow false, requests 0 end"));
    EXPECT_THAT(seen, ::testing::Not(HasSubstr("CONSOLE")));
  }

  std::unique_ptr<Lab> lab_;

 private:
  // A step as given is the solution of its parent; 07 has what comes ready-made with it.
  void make_course() const {
    const auto loaded = load_course(testing::chapters_folder());
    checker::make_course(course(), loaded, "interface = i\n", fs::path(PROJECT_FOLDER) / ".venv",
                         [&loaded](const std::string& name) {
                           const auto label = name.substr(name.find('_') + 1);
                           const auto& step = loaded.step(label);
                           const bool own = name.starts_with("solution_") || step.parent.empty() ||
                                            label == "07";
                           return fs::path(PROGRAM_FOLDER) /
                                  ("solution_" + (own ? label : loaded.step(step.parent).label()));
                         });
    fs::copy_file(CHECKER_PROGRAM, course() / "build/cpu/bin/checker");
    write_file(course() / "build/cpu/CMakeCache.txt",
               "CMAKE_HOME_DIRECTORY:INTERNAL=" + course().string() + "\n");
    fs::create_directory_symlink(fs::path(PROJECT_FOLDER) / "checker", course() / "checker");
  }
};

constexpr auto kExact = "--precision fp64 --deterministic --epochs 3";

TEST_F(JobsTest, EveryScriptAsGivenTrains) {
  std::vector<std::string> jobs;
  for (const auto& step : testing::course().steps) {
    if (step.is_beside()) continue;
    jobs.push_back(submit("sbatch/" + step.name + ".sbatch", "--max-steps 3"));
  }
  for (const auto& job : jobs) EXPECT_THAT(output_of(job), HasSubstr("test loss: "));
}

TEST_F(JobsTest, TwoNodesOfFourRanksComeToTheLossesOfOneRank) {
  const auto job = submit("solutions/07_multi_node/07_multi_node.sbatch",
                          std::string("--batch-size 2 ") + kExact);
  const auto said = output_of(job);
  EXPECT_EQ(record(job).nodes, "n[1-2]");
  expect_same_losses(said, alone(kExact));
  expect_monitored(job);
}

TEST_F(JobsTest, SlurmAloneStartsTheRanksToo) {
  const auto job = submit(
      "--nodes=2 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-task=2 sbatch/07_multi_node.sbatch",
      std::string("--batch-size 2 ") + kExact);
  expect_same_losses(output_of(job), alone(kExact));
}

TEST_F(JobsTest, TheVerbSubmitsAndFollows) {
  const std::string submit = "build/cpu/bin/checker submit 07 --no-build";
  const auto said =
      run_in(*lab_, submit + " --solution -- --config " + TINY_CONFIG + " --max-steps 3", course());
  EXPECT_THAT(said, HasSubstr(": solutions/07_multi_node/07_multi_node.sbatch\n"));
  EXPECT_THAT(said, HasSubstr("  running on n[1-2]\n"));
  EXPECT_THAT(said, HasSubstr("\ntest loss: "));
  EXPECT_THAT(said, ::testing::EndsWith("\n  COMPLETED\n"));
  // A job that fails, and one that Slurm refuses.
  const auto failed = lab_->run({"sh", "-c", submit + " -- --frobnicate"}, {}, course());
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.output, HasSubstr("unknown option '--frobnicate'"));
  EXPECT_THAT(failed.output, ::testing::EndsWith("\n  FAILED, exit code 1:0\n"));
  const auto refused = lab_->run({"sh", "-c", submit + " --sbatch=--gres=gpu:9"}, {}, course());
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.output, HasSubstr("error: Slurm rejected the job: sbatch: error: "));
}

// Two students' jobs, with half of each node's GPUs for each.
TEST_F(JobsTest, TwoJobsOnTheSameNodesDoNotMeet) {
  const std::string options = kExact;
  std::vector<std::string> jobs;
  for (int student = 0; student < 2; ++student) {
    jobs.push_back(
        submit("--gres=gpu:2 --cpus-per-task=2 solutions/07_multi_node/07_multi_node.sbatch",
               "--batch-size 4 " + options));
  }
  wait_until("both run", [&] {
    return run_in(*lab_, "squeue --noheader --states=RUNNING --format=%N") == "n[1-2]\nn[1-2]\n";
  });
  const auto expected = alone(options);
  for (const auto& job : jobs) expect_same_losses(output_of(job), expected);
}

// Told that its time is up, it saves, is queued again, resumes and comes to the same end.
TEST_F(JobsTest, AJobWhoseTimeIsUpIsQueuedAgainAndGoesOn) {
  const std::string longer = std::string(kExact) + " --epochs 8";
  const auto job =
      submit("solutions/07_multi_node/07_multi_node.sbatch", "--batch-size 2 " + longer);
  const auto log = [&] {
    const auto file = record(job).output;
    return fs::exists(file) ? read_file(file) : std::string();
  };
  wait_until("it trains", [&] { return log().find("epoch 2/8") != std::string::npos; });
  run_in(*lab_, "scancel --batch --signal=USR1 " + job);
  const auto said = output_of(job);
  EXPECT_THAT(said, HasSubstr("and saved; --resume continues from there"));
  EXPECT_THAT(said, HasSubstr("resumed after step "));
  expect_same_losses(said, alone(longer));
}

// The short form of what `checker endure` does: a node loses its power after three seconds.
class ChaosTest : public testing::LabTest {};

TEST_F(ChaosTest, ADisturbedJobComesToTheBitsOfAnother) {
  if (!torchrun_works()) {
    GTEST_SKIP() << "no torchrun that works: Python cannot import torch here";
  }
  const auto outcome = endure::chaos_on_a_lab(
      {.trials = {.program = fs::path(PROGRAM_FOLDER) / "solution_07", .count = 1, .seed = 13},
       .course = testing::chapters_folder(),
       .venv = fs::path(PROJECT_FOLDER) / ".venv",
       .disturbances = 1,
       .epochs = 12});
  EXPECT_EQ(outcome.right, 1U) << join(outcome.wrong, "\n");
  EXPECT_NE(outcome.remark, "0 events");
}

}  // namespace
}  // namespace checker
