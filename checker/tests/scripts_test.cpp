// The job scripts, run by a shell in place of Slurm, and read as sbatch reads them.
#include <gmock/gmock.h>

#include "course/render.hpp"
#include "files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::map<fs::path, std::string> jobs() {
  auto files = render_all(load_course(testing::chapters_folder()));
  std::erase_if(files, [](const auto& file) { return file.first.extension() != ".sbatch"; });
  return files;
}

// Everything sbatch takes from a script: it stops reading at the first command.
std::vector<std::string> sbatch_options(const std::string& text) {
  std::vector<std::string> options;
  for (const auto& line : split_lines(text)) {
    if (line.starts_with("#SBATCH ")) options.push_back(line.substr(8));
    if (!line.empty() && !line.starts_with("#")) break;
  }
  return options;
}

TEST(JobScripts, AllOptionsStandBeforeTheFirstCommand) {
  for (const auto& [file, text] : jobs()) {
    SCOPED_TRACE(file);
    size_t all = 0;
    for (const auto& line : split_lines(text)) all += line.starts_with("#SBATCH") ? 1 : 0;
    const auto options = sbatch_options(text);
    EXPECT_TRUE(text.starts_with("#!/bin/bash\n"));
    EXPECT_EQ(options.size(), all);
    EXPECT_THAT(options, ::testing::Contains("--ntasks-per-node=1"));
    EXPECT_THAT(options, ::testing::Contains("--job-name=" + file.stem().string()));
    for (const auto& option : options) {
      EXPECT_THAT(option, Not(::testing::ContainsRegex("--(account|partition|qos|reservation)")));
    }
  }
}

TEST(JobScripts, OnlyTheSolutionTakesFourGpusAndTwoNodes) {
  const auto all = jobs();
  EXPECT_THAT(sbatch_options(all.at("sbatch/07_multi_node.sbatch")),
              ::testing::IsSupersetOf({"--nodes=1", "--gres=gpu:1"}));
  EXPECT_THAT(sbatch_options(all.at("solutions/07_multi_node/07_multi_node.sbatch")),
              ::testing::IsSupersetOf({"--nodes=2", "--gres=gpu:4"}));
}

TEST(JobScripts, ShellsAndShellcheckFindNoFault) {
  const TemporaryFolder folder;
  const bool shellcheck = testing::run_program({"sh", "-c", "command -v shellcheck"}).status == 0;
  for (const auto& [file, text] : jobs()) {
    SCOPED_TRACE(file);
    const auto copy = folder.path() / "job";
    write_file(copy, text);
    EXPECT_EQ(testing::run_program({"bash", "-n", copy.string()}).text, "");
    if (shellcheck) {
      EXPECT_EQ(testing::run_program({"shellcheck", copy.string()}).text, "");
    }
  }
  if (!shellcheck) GTEST_SKIP() << "shellcheck is not installed: only bash -n looked";
}

// A folder with stand-ins for srun, scontrol and torchrun that print what they are asked.
class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    stand_in("bin/srun", "SLURM_NODEID=${TEST_NODEID:-0} exec \"$@\"");
    stand_in("bin/scontrol", "[ \"$*\" = \"show hostnames n[1-2]\" ] && printf 'n1\\nn2\\n'");
    stand_in("bin/torchrun",
             "printf '%s|' torchrun \"$@\"; echo; env | grep -E '^(MASTER|CUDA_V)' | sort");
    stand_in("build/cpu/bin/solution_07", "");
    stand_in("build/cpu/bin/step_07",
             "printf '%s|' \"$@\"; echo; env | grep -E '^(MASTER|CUDA_V)' | sort");
    write_file(folder_.path() / "sbatch/site.conf", "# c\ninterface = i\n");
  }

  void stand_in(const std::string& name, const std::string& script) const {
    write_file(folder_.path() / name, "#!/bin/bash\n" + script + "\n");
    fs::permissions(folder_.path() / name, fs::perms::owner_all);
  }

  testing::Outcome run(const std::string& job, const std::string& node = "0",
                       const std::string& by = "bash") const {
    write_file(folder_.path() / "job", jobs().at(job));
    const auto shell = by == "bash" ? by : (folder_.path() / "bin" / by).string();
    return testing::run_program(
        {shell, (folder_.path() / "job").string(), "--max-steps", "3 4"},
        {"PATH=" + (folder_.path() / "bin").string() + ":/usr/bin:/bin", "SLURM_JOB_ID=123456",
         "SLURM_SUBMIT_DIR=" + folder_.path().string(), "SLURM_JOB_NODELIST=n[1-2]",
         "SLURM_NNODES=2", "SLURM_GPUS_ON_NODE=4", "SLURM_CPUS_PER_TASK=8", "SLURM_JOB_NAME=job",
         "TEST_NODEID=" + node});
  }

  TemporaryFolder folder_;
};

TEST_F(JobTest, TheSolutionStartsTorchrunAsTheClusterNeedsIt) {
  const auto job = run("solutions/07_multi_node/07_multi_node.sbatch");
  EXPECT_EQ(job.status, 0);
  EXPECT_EQ(job.text,
            "torchrun|--no-python|--nnodes=2|--nproc-per-node=4|--rdzv-backend=c10d|"
            "--rdzv-id=123456|--rdzv-endpoint=n1i:23456|--rdzv-conf=is_host=1|"
            "build/cpu/bin/solution_07|--output|output/job-123456|--checkpoint-every|200|--resume|"
            "--max-steps|3 4|\n"
            "CUDA_VISIBLE_DEVICES=0,1,2,3\nMASTER_ADDR=n1i\nMASTER_PORT=23456\n");
}

TEST_F(JobTest, OnlyTheFirstNodeHostsTheRendezvous) {
  EXPECT_THAT(run("solutions/07_multi_node/07_multi_node.sbatch", "1").text,
              HasSubstr("|--rdzv-conf=is_host=0|"));
}

TEST_F(JobTest, AsGivenOneProcessRunsOnOneGpu) {
  const auto job = run("sbatch/07_multi_node.sbatch");
  EXPECT_EQ(job.text,
            "--output|output/job-123456|--checkpoint-every|200|--resume|--max-steps|3 4|\n"
            "CUDA_VISIBLE_DEVICES=0\n");
}

// The ranks' stand-in works until it is told; what tells it is scancel's.
TEST_F(JobTest, BeforeItsTimeIsUpTheRanksAreToldAndTheJobIsQueuedAgain) {
  stand_in("bin/srun", "touch started; while ! [ -e told ]; do sleep 0.01; done; echo saved");
  stand_in("bin/scancel", "echo scancel \"$@\"; touch told");
  stand_in("bin/scontrol", "case $1 in show) echo n1 ;; *) echo scontrol \"$@\" ;; esac");
  stand_in("bin/slurm",
           "cd \"$SLURM_SUBMIT_DIR\"; rm -f started told\n"
           "bash \"$@\" & while ! [ -e started ]; do sleep 0.01; done; kill -USR1 $!; wait $!");
  for (const std::string job :
       {"sbatch/07_multi_node.sbatch", "solutions/07_multi_node/07_multi_node.sbatch"}) {
    const auto outcome = run(job, "0", "slurm");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.text, "scancel --signal=USR1 123456\nsaved\nscontrol requeue 123456\n");
  }
}

TEST_F(JobTest, AJobThatFailsIsNotQueuedAgain) {
  stand_in("bin/srun", "exit 3");
  stand_in("bin/scontrol", "case $1 in show) echo n1 ;; *) echo scontrol \"$@\" ;; esac");
  const auto job = run("solutions/07_multi_node/07_multi_node.sbatch");
  EXPECT_EQ(job.status, 3);
  EXPECT_EQ(job.text, "");
}

TEST_F(JobTest, ModulesOfTheSiteAreLoaded) {
  write_file(folder_.path() / "sbatch/site.conf", "modules = GCC CUDA/13\n");
  // module is a shell function on clusters; here a program of that name does.
  stand_in("bin/module", "echo module \"$@\"");
  EXPECT_THAT(run("sbatch/07_multi_node.sbatch").text,
              ::testing::StartsWith("module load GCC\nmodule load CUDA/13\n"));
}

TEST_F(JobTest, AMissingProgramIsExplained) {
  fs::remove(folder_.path() / "build/cpu/bin/step_07");
  const auto job = run("sbatch/07_multi_node.sbatch");
  EXPECT_EQ(job.status, 1);
  EXPECT_EQ(job.text, "error: first, on the login node: ./workbook prefetch\n");
}

TEST_F(JobTest, AMissingTorchrunIsExplained) {
  fs::remove(folder_.path() / "bin/torchrun");
  const auto job = run("solutions/07_multi_node/07_multi_node.sbatch");
  EXPECT_EQ(job.status, 1);
  EXPECT_THAT(job.text, ::testing::StartsWith("error: torchrun does not run: "));
  EXPECT_THAT(job.text, ::testing::EndsWith("torchrun: command not found\n"
                                            "Fix: run ./workbook prefetch on the login node.\n"));
}

TEST_F(JobTest, ATorchrunThatDoesNotRunIsQuoted) {
  stand_in("bin/torchrun", "printf 'Traceback\\nNo module named typing_extensions\\n' >&2; exit 1");
  const auto job = run("solutions/07_multi_node/07_multi_node.sbatch");
  EXPECT_EQ(job.status, 1);
  EXPECT_EQ(job.text,
            "error: torchrun does not run: No module named typing_extensions\n"
            "Fix: run ./workbook prefetch on the login node.\n");
}

}  // namespace
}  // namespace checker
