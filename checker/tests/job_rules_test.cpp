// Every rule of job scripts, on what a job would have left behind: verify runs such jobs for real.
#include <gmock/gmock.h>

#include "files.hpp"
#include "judge/job_rules.hpp"
#include "judge/tell.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr size_t kGpus = 4;

// A job of the solution on two nodes, as the shims of torchrun and of the trainer saw it.
JobSeen right_job(const std::string& number = "7") {
  JobSeen job;
  job.state = "COMPLETED";
  job.hosts = {"n1", "n2"};
  for (const auto& host : job.hosts) {
    std::map<std::string, std::string> told{{"SLURM_GPUS_ON_NODE", "4"},
                                            {"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
                                            {"MASTER_ADDR", "n1"},
                                            {"MASTER_PORT", "2000" + number}};
    job.launchers.push_back(
        {.host = host,
         .arguments = {"--nnodes=2", "--rdzv-id=" + number, "--rdzv-endpoint=n1:2000" + number,
                       "--rdzv-backend=c10d",
                       "--rdzv-conf=is_host=" + std::string(host == "n1" ? "1" : "0"),
                       "--no-python", "step_07", "--resume"},
         .environment = told,
         .log = {}});
    for (size_t gpu = 0; gpu < kGpus; ++gpu) {
      told["RANK"] = std::to_string(job.trainers.size());
      told["WORLD_SIZE"] = "8";
      job.trainers.push_back(
          {.host = host, .arguments = {"--resume"}, .environment = told, .log = {}});
    }
  }
  return job;
}

// The same script's next job, which got the signal.
JobSeen signalled_job(AfterSignal story = AfterSignal::queued_again) {
  auto job = right_job("8");
  job.state = "FAILED";
  job.restarts = 1;
  job.after_signal = story;
  for (auto& rank : job.trainers) rank.told = true;
  return job;
}

// The TODOs and ids of what is found.
std::vector<std::pair<int, std::string>> found(const JobSeen& job,
                                               const JobSeen& other = signalled_job(),
                                               const std::vector<double>& reported = {2, 1}) {
  std::vector<std::pair<int, std::string>> all;
  const auto symptoms = judge_job({.job = job,
                                   .other = other,
                                   .gpus_per_node = kGpus,
                                   .nodes = 3,
                                   .reported = reported,
                                   .loss_tolerance = 1e-5,
                                   .alone = {2, 1}});
  const auto& course = testing::course();
  for (const auto& finding : tell(course, course.step("07"), symptoms)) {
    all.emplace_back(finding.todo, finding.id);
  }
  return all;
}

// Whatever torchrun was told at its rendezvous endpoint.
JobSeen meeting_at(const std::string& first, const std::string& second) {
  auto job = right_job();
  job.launchers[0].arguments[2] = "--rdzv-endpoint=" + first;
  job.launchers[1].arguments[2] = "--rdzv-endpoint=" + second;
  return job;
}

void set_everywhere(JobSeen& job, const std::string& variable, const std::string& value) {
  for (auto* starts : {&job.launchers, &job.trainers}) {
    for (auto& start : *starts) start.environment[variable] = value;
  }
}

TEST(JobRules, FindNothingInTheSolutionsJob) { EXPECT_THAT(found(right_job()), ElementsAre()); }

TEST(JobRules, GpusAreAskedForAndSeen) {
  auto job = right_job();
  set_everywhere(job, "SLURM_GPUS_ON_NODE", "1");
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "gpus_not_asked_for")));
  job = right_job();
  set_everywhere(job, "CUDA_VISIBLE_DEVICES", "0");
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "gpus_not_visible")));
  set_everywhere(job, "CUDA_VISIBLE_DEVICES", "1,2,3,4");
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "gpus_not_visible"))) << "there is no number 4";
  set_everywhere(job, "CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c,GPU-d");
  EXPECT_THAT(found(job), ElementsAre());
  for (auto& start : job.trainers) start.environment.erase("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(found(job), ElementsAre()) << "CUDA sees all of them";
  job = right_job();
  job.refused = "Requested node configuration is not available";
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "job_refused")));
  job.refused = "sbatch: error: \"two\" is not a valid node count";
  EXPECT_THAT(found(job), ElementsAre(Pair(17, "job_refused")));
}

TEST(JobRules, AJobThatAsksForMoreThanThereIsNeverStarts) {
  JobSeen job;
  job.reason = "PartitionConfig";
  job.out_of_time = true;
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "job_never_starts")));
  job.nodes_asked = 4;
  EXPECT_THAT(found(job), ElementsAre(Pair(17, "job_never_starts"))) << "the cluster has three";
  job.reason = "Resources";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "nothing_started")));
}

TEST(JobRules, NodesMeetAtTheFirst) {
  const std::vector<std::pair<JobSeen, std::string>> wrong{
      {meeting_at("", ""), "master_not_set"},
      {meeting_at("n1", "n1"), "master_not_set"},
      {meeting_at("n1:20007", "n2:20007"), "masters_differ"},
      {meeting_at("n2:20007", "n2:20007"), "master_not_first_node"},
      {meeting_at("n1:20007", "n1:20009"), "ports_differ"},
      {meeting_at("n1:7", "n1:7"), "port_not_usable"},
      {meeting_at("n1:70000", "n1:70000"), "port_not_usable"}};
  for (auto [job, id] : wrong) {
    if (id == "master_not_set") {  // else the environment says it as well
      set_everywhere(job, "MASTER_ADDR", "");
      set_everywhere(job, "MASTER_PORT", "");
    }
    EXPECT_THAT(found(job), ElementsAre(Pair(15, id)));
  }
  for (const std::string here : {"localhost", "127.0.1.1"}) {
    auto job = meeting_at(here + ":20007", here + ":20007");
    EXPECT_THAT(found(job), ElementsAre(Pair(16, "endpoint_is_localhost")));
    set_everywhere(job, "MASTER_ADDR", here);
    EXPECT_THAT(found(job), ElementsAre(Pair(15, "master_is_localhost")));
  }
  EXPECT_THAT(found(meeting_at("n1", "n1")), ElementsAre(Pair(16, "endpoint_without_port")));
  EXPECT_THAT(found(right_job(), right_job("7")), ElementsAre(Pair(15, "port_of_every_job")));
  EXPECT_THAT(found(right_job(), right_job("800")), ElementsAre(Pair(15, "port_not_usable")))
      << "in the next job";
}

// Slurm's own ranks have no torchrun: the environment tells them.
TEST(JobRules, RanksThatSlurmStartsMeetByTheEnvironment) {
  auto job = right_job();
  job.launchers.clear();
  for (size_t i = 0; i < job.trainers.size(); ++i) {
    auto& told = job.trainers[i].environment;
    told.erase("RANK");
    told.erase("WORLD_SIZE");
    told["SLURM_PROCID"] = std::to_string(i);
    told["SLURM_NTASKS"] = "8";
  }
  EXPECT_THAT(found(job), ElementsAre());
  job.trainers.back().environment["MASTER_PORT"] = "20009";
  EXPECT_THAT(found(job), ElementsAre(Pair(15, "ports_differ")));
}

TEST(JobRules, OneRankForEachGpuInOneWorld) {
  auto job = right_job();
  job.launchers.push_back(job.launchers.front());
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "torchrun_once_per_task")));
  job = right_job();
  job.launchers[1].arguments[1] = "--rdzv_id=n2";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "rdzv_ids_differ")));
  job = right_job();
  job.launchers[1].arguments[0] = "--nnodes=1";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "nnodes_differ")));
  job = right_job();
  job.trainers.resize(kGpus);
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "not_a_rank_per_gpu")));
  job.launchers.resize(1);
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "torchrun_on_some_nodes")));
  job = right_job();
  for (auto& start : job.trainers) start.environment["WORLD_SIZE"] = "4";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "several_worlds")));
  job = right_job();
  job.trainers[5].environment["RANK"] = "4";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "several_worlds")));
}

// What each node's torchrun was started with.
JobSeen started_with(const std::vector<std::string>& first,
                     const std::vector<std::string>& second) {
  auto job = right_job();
  job.trainers.clear();
  job.launchers[0].arguments = first;
  job.launchers[1].arguments = second;
  return job;
}

TEST(JobRules, TorchrunGetsAProgramAndItsOwnOptions) {
  using Words = std::vector<std::string>;
  const Words right = right_job().launchers[0].arguments;
  const Words options(right.begin(), right.end() - 2);
  const auto with = [&](const Words& more) {
    auto words = options;
    words.insert(words.end(), more.begin(), more.end());
    return started_with(words, words);
  };
  EXPECT_THAT(found(with({})), ElementsAre(Pair(16, "torchrun_without_program")));
  EXPECT_THAT(found(with({""})), ElementsAre(Pair(16, "torchrun_without_program")));
  EXPECT_THAT(found(with({"--output", "o"})), ElementsAre(Pair(16, "torchrun_without_program")));
  EXPECT_THAT(found(with({"--node-rank=", "step_07"})),
              ElementsAre(Pair(16, "torchrun_option_empty")));
  EXPECT_THAT(found(with({"step_07"})), ElementsAre(Pair(16, "rendezvous_with_two_hosts")))
      << "--no-python has no value, and needs none";
  auto with_python = right;
  std::erase(with_python, "--no-python");
  EXPECT_THAT(found(started_with(with_python, with_python)),
              ElementsAre(Pair(16, "program_run_by_python")));
  auto job = right_job();
  for (auto& rank : job.trainers) rank.arguments.clear();
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "ranks_without_their_options")));
  job = right_job();
  job.launchers.clear();
  job.trainers.clear();
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "nothing_started")));
}

TEST(JobRules, OneNodeHostsTheRendezvous) {
  auto job = right_job();
  for (auto& launcher : job.launchers) launcher.arguments[4] = "--rdzv-conf=is_host=1";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "rendezvous_with_two_hosts")));
  for (auto& launcher : job.launchers) launcher.arguments[4] = "--rdzv-conf=timeout=60";
  EXPECT_THAT(found(job), ElementsAre()) << "torchrun knows its own name";
  for (auto& launcher : job.launchers) launcher.arguments[4] = "--rdzv-conf=is_host=0";
  EXPECT_THAT(found(job), ElementsAre()) << "they have met";
  job.trainers.clear();
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "rendezvous_without_host")));
  for (auto& launcher : job.launchers) launcher.arguments[3] = "--node-rank=0";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "node_ranks_equal")));
  for (auto& launcher : job.launchers) launcher.arguments[3] = "--rdzv-backend=static";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "node_ranks_equal"))) << "both are 0 by default";
}

TEST(JobRules, NodesThatNeverMeetHaveTheRightNumberOfRanksToStart) {
  const auto waiting = [](const std::string& backend, const std::string& ranks) {
    const std::vector<std::string> words{"--nproc-per-node=" + ranks, "--rdzv-endpoint=n1:20007",
                                         backend, "--no-python", "step_07"};
    auto job = started_with(words, words);
    job.out_of_time = true;
    return job;
  };
  EXPECT_THAT(found(waiting("--standalone", "4")), ElementsAre(Pair(16, "nodes_never_meet")));
  EXPECT_THAT(found(waiting("--rdzv-backend=c10d", "4")),
              ElementsAre(Pair(16, "nodes_never_meet")));
  EXPECT_THAT(found(waiting("--standalone", "8")), ElementsAre(Pair(16, "not_a_rank_per_gpu")));
}

TEST(JobRules, AfterTheSignalRanksSaveAndTheJobIsQueuedAgain) {
  const std::vector<std::pair<AfterSignal, std::string>> wrong{
      {AfterSignal::script_over, "script_ends_before_its_ranks"},
      {AfterSignal::ranks_not_told, "signal_not_passed_on"},
      {AfterSignal::goes_on, "job_goes_on_without_its_ranks"},
      {AfterSignal::ended, "not_queued_again"},
      {AfterSignal::held, "queued_again_but_held"}};
  for (const auto& [story, id] : wrong) {
    EXPECT_THAT(found(right_job(), signalled_job(story)), ElementsAre(Pair(16, id)));
  }
  auto job = signalled_job(AfterSignal::launcher_lost);
  for (auto& rank : job.trainers) rank.lost = rank.host == "n1" ? "torchrun" : "";
  EXPECT_THAT(found(right_job(), job), ElementsAre(Pair(16, "signal_ends_the_launcher")));
  job = signalled_job(AfterSignal::script_over);
  job.exit_code = "0:10";
  EXPECT_THAT(found(right_job(), job), ElementsAre(Pair(16, "signal_ends_the_script")));
  job = signalled_job();
  job.restarts = 2;
  EXPECT_THAT(found(right_job(), job), ElementsAre(Pair(16, "queued_again_after_failing")));
  job = right_job();
  job.restarts = 1;
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "queued_again_after_its_end")));
}

TEST(JobRules, TwoNodes) {
  auto job = right_job();
  job.hosts.resize(1);
  job.launchers.resize(1);
  job.trainers.resize(kGpus);
  set_everywhere(job, "WORLD_SIZE", "4");
  EXPECT_THAT(found(job), ElementsAre(Pair(17, "not_two_nodes")));
}

TEST(JobRules, TheEndAndTheLossesCountWhereNothingElseIsWrong) {
  auto job = right_job();
  job.state = "FAILED";
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "job_fails")));
  job.out_of_time = true;
  EXPECT_THAT(found(job), ElementsAre(Pair(16, "job_stands_still")));
  EXPECT_THAT(found(right_job(), signalled_job(), {2, 1.001}),
              ElementsAre(Pair(16, "loss_not_that_of_one_rank")));
  EXPECT_THAT(found(right_job(), signalled_job(), {2}),
              ElementsAre(Pair(16, "loss_not_that_of_one_rank")));
  set_everywhere(job, "CUDA_VISIBLE_DEVICES", "0");
  EXPECT_THAT(found(job), ElementsAre(Pair(14, "gpus_not_visible")));
}

}  // namespace
}  // namespace checker
