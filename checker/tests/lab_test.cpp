// A lab is a cluster: what jobs see in it.
#include "lab/lab.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "lab/configuration.hpp"
#include "lab_fixture.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LabTest;
using ::testing::Pair;
using testing::run_in;
using ::testing::UnorderedElementsAre;

TEST_F(LabTest, IsReadyWhenItHasStarted) {
  const auto lab = Lab::start({});
  EXPECT_THAT(lab.node_states(), ElementsAre(Pair("n1", "idle"), Pair("n2", "idle")));
  EXPECT_EQ(run_in(lab, "sinfo --noheader --format='%P %D %t'"), "main* 2 idle\n");
  EXPECT_EQ(run_in(lab, "hostname; echo $SLURM_CONF"), "ctl\n" + lab.slurm_conf().string() + "\n");
}

TEST_F(LabTest, EightTasksOnTwoNodesKnowWhoTheyAre) {
  const auto lab = Lab::start({});
  const auto said = run_in(
      lab,
      "srun --nodes=2 --ntasks-per-node=4 --gres=gpu:4 sh -c 'echo $(hostname) $SLURM_PROCID "
      "$SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_NODELIST "
      "$CUDA_VISIBLE_DEVICES'");
  std::vector<std::string> expected;
  for (int task = 0; task < 8; ++task) {
    const int node = task / 4;
    expected.push_back("n" + std::to_string(node + 1) + " " + std::to_string(task) + " " +
                       std::to_string(task % 4) + " " + std::to_string(node) +
                       " 8 2 n[1-2] 0,1,2,3");
  }
  EXPECT_THAT(split_lines(said), ::testing::UnorderedElementsAreArray(expected));
}

TEST_F(LabTest, NodesReachEachOtherByName) {
  const auto lab = Lab::start({.nodes = 3, .interface_suffix = "i"});
  const auto said =
      run_in(lab,
             "srun --nodes=3 sh -c 'for node in ctl n1 n2 n3 n3i localhost; do getent "
             "hosts $node >/dev/null && echo $node; done' | sort | uniq -c");
  EXPECT_THAT(split_lines(said),
              UnorderedElementsAre("      3 ctl", "      3 n1", "      3 n2", "      3 n3",
                                   "      3 n3i", "      3 localhost"));
  EXPECT_THAT(run_in(lab,
                     "srun --nodelist=n1 bash -c 'sleep 60 </dev/tcp/n3/6818 & "
                     "sleep 0.2; kill -0 $! && echo through; kill $!'"),
              HasSubstr("through"));
}

TEST_F(LabTest, AJobWorksInTheProjectsFilesOnAllNodes) {
  const auto lab = Lab::start({});
  write_file(scratch() / "job.sbatch",
             "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:4\n#SBATCH --output=job.out\n"
             "hostname; srun sh -c 'echo $PWD >on.$(hostname)'\nexit 3\n");
  const auto job = lab.run({"sbatch", "--wait", "job.sbatch"}, {}, scratch(), 120s);
  EXPECT_EQ(job.status, 3) << job.output;
  EXPECT_EQ(read_file(scratch() / "job.out"), "n1\n");
  EXPECT_EQ(read_file(scratch() / "on.n1"), scratch().string() + "\n");
  EXPECT_EQ(read_file(scratch() / "on.n2"), scratch().string() + "\n");
}

TEST_F(LabTest, AJobWithoutAnEnvironmentFindsItsSlurm) {
  const auto lab = Lab::start({});
  EXPECT_EQ(
      run_in(lab, "sbatch --wait --quiet --export=NONE --output=out --wrap 'srun /bin/hostname'",
             scratch()),
      "");
  EXPECT_EQ(read_file(scratch() / "out"), "n1\n");
}

TEST_F(LabTest, WhatASiteAsksForIsThere) {
  const auto lab = Lab::start({.partitions = {"cpu", "gpu"}, .reservation = "day1"});
  write_file(scratch() / "job", "#!/bin/bash\necho $SLURM_JOB_PARTITION $SLURM_JOB_RESERVATION\n");
  const auto job = lab.run(
      {"sbatch", "--wait", "--output=out", "job"},
      {"SBATCH_ACCOUNT=a", "SBATCH_QOS=q", "SBATCH_PARTITION=gpu", "SBATCH_RESERVATION=day1"},
      scratch(), 120s);
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_EQ(read_file(scratch() / "out"), "gpu day1\n");
  const auto wrong = lab.run({"sbatch", "--partition=none", "job"}, {}, scratch(), 120s);
  EXPECT_THAT(wrong.output, HasSubstr("invalid partition"));
}

TEST_F(LabTest, ARequeuedJobStartsAgainSoon) {
  const auto lab = Lab::start({});
  write_file(scratch() / "job",
             "#!/bin/bash\necho ${SLURM_RESTART_COUNT:-0} >>starts\n"
             "[ \"$SLURM_RESTART_COUNT\" = 1 ] || sleep 600\n");
  const std::string id(
      trim(run_in(lab, "sbatch --parsable --requeue --output=out job", scratch())));
  const auto starts = scratch() / "starts";
  wait_until("the job starts", [&] { return std::filesystem::exists(starts); });
  run_in(lab, "scontrol requeue " + id);
  const auto again = std::chrono::steady_clock::now();
  wait_until("it starts again", [&] { return read_file(starts) == "0\n1\n"; });
  EXPECT_LT(std::chrono::steady_clock::now() - again, 60s);
}

TEST_F(LabTest, ASignalReachesTheJobScript) {
  const auto lab = Lab::start({});
  write_file(scratch() / "job",
             "#!/bin/bash\ntrap 'echo saved >saved; exit 0' USR1\necho >ready\n"
             "while :; do sleep 0.1; done\n");
  const std::string id(trim(run_in(lab, "sbatch --parsable --output=out job", scratch())));
  wait_until("the job is ready", [&] { return std::filesystem::exists(scratch() / "ready"); });
  run_in(lab, "scancel --signal=USR1 --batch " + id);
  wait_until("the job has saved", [&] { return std::filesystem::exists(scratch() / "saved"); });
}

TEST_F(LabTest, ANodeCanBeTakenOutAndPutBack) {
  const auto lab = Lab::start({});
  // Not down: from there a node comes back by itself, as soon as it next says that it is well.
  run_in(lab, "scontrol update nodename=n1 state=drain reason=test");
  EXPECT_EQ(lab.node_states()["n1"], "drained");
  EXPECT_EQ(run_in(lab, "srun hostname"), "n2\n");
  run_in(lab, "scontrol update nodename=n1 state=resume");
  wait_until("n1 is idle", [&] { return lab.node_states()["n1"] == "idle"; });
}

TEST_F(LabTest, AKilledNodeTakesItsProcessesAlongAndComesBack) {
  const auto lab = Lab::start({});
  const auto pulse = scratch() / "pulse";
  write_file(scratch() / "job",
             "#!/bin/bash\nsetsid bash -c '(while :; do date +%N >pulse; sleep 0.05; done) &' &\n"
             "sleep 600\n");
  run_in(lab, "sbatch --no-requeue --nodelist=n1 --output=out job", scratch());
  wait_until("the job runs", [&] { return std::filesystem::exists(pulse); });
  lab.kill_node("n1");
  const auto last = read_file(pulse);
  EXPECT_THAT(testing::error_of([&] { lab.kill_node("n1"); }), HasSubstr("n1 is not running"));
  wait_until("Slurm notices", [&] { return lab.node_states()["n1"].starts_with("down"); });
  EXPECT_EQ(read_file(pulse), last);
  EXPECT_EQ(run_in(lab, "srun hostname"), "n2\n");
  lab.start_node("n1");
  EXPECT_THAT(testing::error_of([&] { lab.start_node("n1"); }), HasSubstr("n1 runs already"));
  EXPECT_EQ(run_in(lab, "srun --nodelist=n1 hostname"), "n1\n");
}

TEST_F(LabTest, TimeForACommandIsLimited) {
  const auto lab = Lab::start({});
  const auto run = lab.run({"sh", "-c", "echo begun; sleep 600"}, {}, {}, 500ms);
  EXPECT_TRUE(run.out_of_time);
  EXPECT_NE(run.status, 0);
  EXPECT_EQ(run.output, "begun\n");
}

TEST_F(LabTest, TwoLabsDoNotKnowEachOther) {
  const auto one = Lab::start({}), other = Lab::start({.nodes = 1});
  EXPECT_NE(one.name(), other.name());
  EXPECT_EQ(run_in(one, "sbatch --parsable --output=/dev/null --wrap 'sleep 600'"), "1\n");
  EXPECT_EQ(run_in(other, "squeue --noheader"), "");
  EXPECT_EQ(run_in(other, "srun --gres=gpu:4 hostname"), "n1\n");
  EXPECT_THAT(testing::error_of([&] { Lab::start({.name = one.name()}); }),
              HasSubstr("A lab already exists: " + one.name() + ". Fix: "));
}

TEST_F(LabTest, ADaemonThatEndsAtOnceIsQuoted) {
  stand_in("slurmctld", "echo fatal: it rains; exit 1");
  const auto error = testing::error_of([] { Lab::start({}); });
  EXPECT_THAT(error,
              HasSubstr("slurmctld ended: exit status 1. Its last lines:\n  fatal: it rains"));
  EXPECT_FALSE(std::filesystem::exists(registry() / "lab1"));
}

TEST_F(LabTest, ADaemonThatIsNeverReadyIsQuoted) {
  stand_in("slurmd", "echo still thinking; exec sleep 600");
  const auto error = testing::error_of([] { Lab::start({.patience = 2s}); });
  EXPECT_THAT(error, HasSubstr("did not start in 2 s"));
  EXPECT_THAT(error, HasSubstr("The last lines of n1:\n  still thinking"));
}

TEST(LabOptions, AreChecked) {
  const auto error = [](const LabOptions& options) {
    return testing::error_of([&] { check_options(options); });
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_THAT(error({.nodes = 0}), HasSubstr("0 nodes are impossible: a lab has 1 to 16"));
  EXPECT_THAT(error({.gpus_per_node = 17}), HasSubstr("17 GPUs"));
  EXPECT_THAT(error({.partitions = {"a b"}}), HasSubstr("\"a b\" is not a name for a partition"));
}

}  // namespace
}  // namespace checker
