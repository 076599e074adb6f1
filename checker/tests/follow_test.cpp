// What Slurm says of a job, and how it is told.
#include "jobs/follow.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "support/files.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;

// As Slurm 22.05 prints it.
constexpr std::string_view kRunning = R"(JobId=4 JobName=07_multi_node
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=4294901757 Nice=0 Account=(null) QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[1-2]
   BatchHost=n1
   Command=/home/me/my course/sbatch/07_multi_node.sbatch
   StdOut=/home/me/my course/07_multi_node-4.out
   Power=
)";

TEST(JobRecord, IsReadFromWhatScontrolShows) {
  const auto job = parse_job_record(kRunning);
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.reason, "");
  EXPECT_EQ(job.nodes, "n[1-2]");
  EXPECT_EQ(job.nodes_asked, 0);
  EXPECT_EQ(job.exit_code, "0:0");
  EXPECT_EQ(job.output, "/home/me/my course/07_multi_node-4.out");
  EXPECT_FALSE(job.is_over());
}

TEST(JobRecord, OfAJobWithoutNodesHasNone) {
  const auto job = parse_job_record(
      "JobId=5 JobName=x\n   JobState=PENDING Reason=Resources Dependency=(null)\n"
      "   NodeList=(null)\n   NumNodes=4-4 NumCPUs=4\n");
  EXPECT_EQ(job.state, "PENDING");
  EXPECT_EQ(job.reason, "Resources");
  EXPECT_EQ(job.nodes, "");
  EXPECT_EQ(job.nodes_asked, 4);
}

TEST(JobRecord, KnowsWhichStatesAreTheEnd) {
  for (const std::string state : {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"}) {
    EXPECT_TRUE(JobRecord{.state = state}.is_over()) << state;
  }
  for (const std::string state : {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED"}) {
    EXPECT_FALSE(JobRecord{.state = state}.is_over()) << state;
  }
}

class JobFollowerTest : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(output(), std::ios::app) << text; }
  std::filesystem::path output() const { return folder_.path() / "job.out"; }
  JobRecord job(const std::string& state, const std::string& reason = "") const {
    return {
        .state = state, .reason = reason, .nodes = "n1", .exit_code = "3:0", .output = output()};
  }

  std::vector<std::string> told_;
  JobFollower follower_{[&](std::string_view news) { told_.push_back("* " + std::string(news)); },
                        [&](std::string_view line) { told_.emplace_back(line); }};

 private:
  TemporaryFolder folder_;
};

TEST_F(JobFollowerTest, TellsEveryChangeOnceAndEveryLine) {
  follower_.look(job("PENDING"));
  follower_.look(job("PENDING", "Resources"));
  follower_.look(job("PENDING", "Resources"));
  follower_.look(job("RUNNING"));
  write("one\ntw");
  follower_.look(job("RUNNING"));
  write("o\nthree");
  follower_.look(job("COMPLETING"));
  follower_.look(job("COMPLETED"));
  EXPECT_THAT(told_, ElementsAre("* waiting", "* waiting, Resources: its nodes are busy",
                                 "* running on n1", "one", "two", "three", "* COMPLETED"));
}

TEST_F(JobFollowerTest, AJobThatIsQueuedAgainIsFollowedOn) {
  follower_.look(job("RUNNING"));
  write("saved\n");
  follower_.look(job("PENDING", "BeginTime"));
  follower_.look(job("RUNNING"));
  write("resumed\n");
  follower_.look(job("FAILED"));
  EXPECT_THAT(told_,
              ElementsAre("* running on n1", "* waiting, BeginTime: a requeued job waits a while",
                          "saved", "* running on n1", "resumed", "* FAILED, exit code 3:0"));
}

TEST_F(JobFollowerTest, AnOutputThatIsNotThereYetIsNothingToTell) {
  follower_.look(job("RUNNING"));
  EXPECT_THAT(told_, ElementsAre("* running on n1"));
}

}  // namespace
}  // namespace checker
