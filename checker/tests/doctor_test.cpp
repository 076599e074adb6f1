// The doctor, on machines made of stand-ins.
#include "doctor/doctor.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "doctor/look_up.hpp"
#include "support/files.hpp"

namespace checker::doctor {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(LookUp, FindsVersions) {
  EXPECT_EQ(version_behind("Cuda compilation tools, release 13.0, V13.0.88", "release"), "13.0");
  EXPECT_EQ(version_behind("slurm-wlm 22.05.8\n", ""), "22.05.8");
  EXPECT_EQ(version_behind("ends with 3.", ""), "3");
  EXPECT_EQ(version_behind("nothing", ""), "");
  EXPECT_EQ(version_behind("1.2", "release"), "");
}

TEST(LookUp, ComparesVersionsByNumbers) {
  EXPECT_TRUE(at_least("580.95.05", "580.65.06"));
  EXPECT_TRUE(at_least("580.65.06", "580.65.06"));
  EXPECT_TRUE(at_least("1000.1", "580.65.06"));
  EXPECT_FALSE(at_least("580.65", "580.65.06"));
  EXPECT_FALSE(at_least("95.99", "580.65.06"));
}

TEST(LookUp, AProgramThatIsNotThereOrFailsHasNoAnswer) {
  EXPECT_EQ(answer_of({"echo", " yes "}), "yes");
  EXPECT_EQ(answer_of({"false"}), std::nullopt);
  EXPECT_EQ(answer_of({"there-is-no-such-program"}), std::nullopt);
}

// A project and a PATH of its own.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    ::setenv("PATH", (bin().string() + ":/usr/bin:/bin").c_str(), 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    project_.source = folder_.path();
    project_.build = folder_.path() / "build/cpu";
    write_file(project_.build / "CMakeCache.txt", "");
    write_file(folder_.path() / "sbatch/site.conf", "");
  }
  ~DoctorTest() override { ::setenv("PATH", path_.c_str(), 1); }

  fs::path bin() const { return folder_.path() / "bin"; }

  void stand_in(const std::string& name, const std::string& script) const {
    write_file(bin() / name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(bin() / name, fs::perms::owner_all);
  }

  void cache(const std::string& lines) const {
    write_file(project_.build / "CMakeCache.txt", lines);
  }

  using Examine = std::vector<HealthCheck> (*)(const Place&);
  // What is found on this subject; "absent" without a check on it.
  HealthCheck find(Examine examine, const std::string& subject, bool compute_node = false) const {
    const auto all = examine({project_, compute_node});
    const auto found = std::ranges::find(all, subject, &HealthCheck::subject);
    return found == all.end() ? HealthCheck{subject, Health::absent, "no line"} : *found;
  }

  Project project_;

 private:
  TemporaryFolder folder_;
  std::string path_ = std::getenv("PATH");
};

TEST_F(DoctorTest, ADriverMustBeNewEnoughForCuda) {
  stand_in("nvidia-smi", "echo '535.104.05, NVIDIA A100'");
  auto driver = find(examine_gpus, "driver");
  EXPECT_EQ(driver.health, Health::bad);
  EXPECT_EQ(driver.found, "535.104.05, and CUDA 13 needs 580.65.06");
  EXPECT_THAT(driver.fix, HasSubstr("--cpu"));
  stand_in("nvidia-smi", "echo '580.95.05, NVIDIA H200'");
  driver = find(examine_gpus, "driver");
  EXPECT_EQ(driver.health, Health::good);
  EXPECT_EQ(driver.found, "580.95.05");
}

TEST_F(DoctorTest, NoGpuIsAllRightExceptInAJobForThem) {
  stand_in("nvidia-smi", "exit 9");
  EXPECT_EQ(find(examine_gpus, "GPUs").health, Health::absent);
  cache("WORLDSIZE_CUDA:BOOL=ON\n");
  EXPECT_EQ(find(examine_gpus, "GPUs").health, Health::absent);
  EXPECT_EQ(find(examine_gpus, "GPUs", true).health, Health::bad);
  EXPECT_THAT(find(examine_gpus, "GPUs", true).fix, HasSubstr("--gres=gpu:4"));
}

TEST_F(DoctorTest, TheToolkitMustBeOfLibTorchsCuda) {
  cache("WORLDSIZE_CUDA:BOOL=ON\nCMAKE_CUDA_COMPILER:FILEPATH=nvcc\n");
  stand_in("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'");
  EXPECT_EQ(find(examine_gpus, "CUDA").found, "12.4, but LibTorch has 13");
  stand_in("nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'");
  EXPECT_EQ(find(examine_gpus, "CUDA").health, Health::good);
}

TEST_F(DoctorTest, AComputeNodeNeedsNoCompiler) {
  cache("CMAKE_CXX_COMPILER:STRING=/nowhere/clang++\n");
  fs::create_directories(project_.source / "checker");
  fs::create_directory_symlink(fs::path(PROJECT_FOLDER) / "checker/chapters", project_.chapters());
  EXPECT_EQ(find(examine_software, "compiler").health, Health::bad);
  EXPECT_EQ(find(examine_software, "compiler", true).health, Health::absent);
  // But the programs must be there.
  EXPECT_EQ(find(examine_software, "programs").health, Health::absent);
  EXPECT_EQ(find(examine_software, "programs", true).health, Health::bad);
  EXPECT_THAT(find(examine_software, "programs", true).found, HasSubstr("steps 01, 02,"));
  stand_in("clang++", "echo clang version 14");
  cache("CMAKE_CXX_COMPILER:STRING=clang++\n");
  EXPECT_EQ(find(examine_software, "compiler").found, "clang version 14");
}

TEST_F(DoctorTest, ASlurmThatDoesNotAnswerIsToldFromNone) {
  stand_in("sbatch", "echo slurm 24.05.1");
  stand_in("sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1");
  auto slurm = find(examine_cluster, "Slurm");
  EXPECT_EQ(slurm.health, Health::bad);
  EXPECT_EQ(slurm.found, "24.05.1, but its controller does not answer");
  stand_in("sinfo", "printf 'n1 idle\\nn2 mixed\\nn3 idle\\n'");
  slurm = find(examine_cluster, "Slurm");
  EXPECT_EQ(slurm.health, Health::good);
  EXPECT_EQ(slurm.found, "24.05.1, 3 nodes, 2 idle");
}

TEST_F(DoctorTest, TheInterfaceMustBeAHostsName) {
  stand_in("sbatch", "echo slurm 24.05.1");
  stand_in("sinfo", "echo 127.0.0.1");
  const auto site = project_.source / "sbatch/site.conf";
  write_file(site, "account = mine\n");
  EXPECT_EQ(find(examine_cluster, "site").found, "account=mine");
  EXPECT_EQ(find(examine_cluster, "interface").found, "no line");
  write_file(site, "interface = .invalid\n");
  EXPECT_EQ(find(examine_cluster, "interface").health, Health::bad);
  EXPECT_EQ(find(examine_cluster, "interface").found, "unknown host 127.0.0.1.invalid");
  stand_in("sinfo", "echo local");
  write_file(site, "interface = host\n");
  EXPECT_EQ(find(examine_cluster, "interface").health, Health::good);
}

TEST_F(DoctorTest, AWrongSiteFileIsNamed) {
  write_file(project_.source / "sbatch/site.conf", "acount = x\n");
  const auto site = find(examine_cluster, "site");
  EXPECT_EQ(site.health, Health::bad);
  EXPECT_THAT(site.found, HasSubstr("sbatch/site.conf:1: unknown key acount"));
}

TEST_F(DoctorTest, LooksAtTheMachine) {
  for (const std::string subject : {"disk", "/dev/shm", "limits", "clock"}) {
    EXPECT_NE(find(examine_machine, subject).found, "no line") << subject;
  }
  EXPECT_EQ(find(examine_machine, "clock").health, Health::good);
  // Nothing of it stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(project_.build), {}), 1);
}

}  // namespace
}  // namespace checker::doctor
