#include "distributed_utils/launch.hpp"

#include <gmock/gmock.h>

#include <map>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Variables = std::map<std::string, std::string>;

Launch read(const Variables& variables) {
  return read_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

const Variables kTorchrun = {{"RANK", "5"},          {"LOCAL_RANK", "1"},
                             {"WORLD_SIZE", "8"},    {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "n01"}, {"MASTER_PORT", "29400"}};

const Variables kSlurm = {{"SLURM_PROCID", "3"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_NUM_NODES", "2"},
                          {"SLURM_STEP_NODELIST", "jwb[0012-0013]"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_JOB_ID", "4711"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(Launch, NothingIsAWorldOfOne) {
  const Launch launch = read({});
  EXPECT_EQ(launch.launcher, "none");
  EXPECT_EQ(launch.world_size, 1);
  EXPECT_EQ(launch.rank, 0);
  EXPECT_TRUE(launch.single_node);
}

TEST(Launch, ReadsTorchrun) {
  const Launch launch = read(kTorchrun);
  EXPECT_EQ(launch.launcher, "torchrun");
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.world_size, 8);
  EXPECT_FALSE(launch.single_node);
  EXPECT_EQ(launch.master_addr, "n01");
  EXPECT_EQ(launch.master_port, 29400);
  EXPECT_FALSE(launch.agent_store);
  EXPECT_TRUE(read(with(kTorchrun, "LOCAL_WORLD_SIZE", "8")).single_node);
}

TEST(Launch, KnowsTorchrunsAgentAndRestart) {
  const Launch launch = read(with(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True"),
                                  "TORCHELASTIC_RESTART_COUNT", "2"));
  EXPECT_TRUE(launch.agent_store);
  EXPECT_EQ(launch.restart_count, "2");
}

TEST(Launch, ReadsSlurmsStep) {
  const Launch launch = read(kSlurm);
  EXPECT_EQ(launch.launcher, "Slurm");
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.world_size, 4);
  EXPECT_FALSE(launch.single_node);
  EXPECT_EQ(launch.master_addr, "jwb0012");
}

TEST(Launch, SlurmsPortDiffersByJobAndStep) {
  const auto port = [](const Variables& variables) { return read(variables).master_port; };
  EXPECT_NE(port(kSlurm), port(with(kSlurm, "SLURM_JOB_ID", "4712")));
  EXPECT_NE(port(kSlurm), port(with(kSlurm, "SLURM_STEP_ID", "1")));
  EXPECT_GE(port(kSlurm), 10000);
  EXPECT_LT(port(kSlurm), 30000);
}

TEST(Launch, MasterFromTheEnvironmentWins) {
  const Launch launch = read(with(with(kSlurm, "MASTER_ADDR", "jwb0012i"), "MASTER_PORT", "7010"));
  EXPECT_EQ(launch.master_addr, "jwb0012i");
  EXPECT_EQ(launch.master_port, 7010);
}

TEST(Launch, ABatchScriptOutsideSrunIsAWorldOfOne) {
  // sbatch sets SLURM_PROCID=0 for the script itself, of which only one runs.
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).world_size, 1);
}

TEST(Launch, TorchrunWinsOverTheSlurmItRunsIn) {
  Variables both = kSlurm;
  both.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(read(both).launcher, "torchrun");
}

TEST(Launch, ReadsOpenMpi) {
  const Variables local = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Launch launch = read(local);
  EXPECT_EQ(launch.launcher, "Open MPI");
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.master_addr, "127.0.0.1");
  EXPECT_THAT([&] { read(with(local, "OMPI_COMM_WORLD_LOCAL_SIZE", "1")); },
              ThrowsMessage<Error>(HasSubstr("MASTER_ADDR")));
}

TEST(Launch, SaysWhichVariableIsMissing) {
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT"}) {
    EXPECT_THAT([&] { read(without(kTorchrun, name)); }, ThrowsMessage<Error>(HasSubstr(name)));
  }
}

TEST(Launch, SaysWhichVariableIsNoSuchNumber) {
  for (const char* value : {"eight", "8x", "-1", "0x4", "", "99999999999999999999"}) {
    EXPECT_THAT([&] { read(with(kTorchrun, "WORLD_SIZE", value)); },
                ThrowsMessage<Error>(HasSubstr("WORLD_SIZE")))
        << value;
  }
  EXPECT_THAT([&] { read(with(kTorchrun, "RANK", "8")); },
              ThrowsMessage<Error>(HasSubstr("RANK='8' is not a number from 0 to 7")));
  EXPECT_THAT([&] { read(with(kTorchrun, "MASTER_PORT", "70000")); },
              ThrowsMessage<Error>(HasSubstr("MASTER_PORT")));
}

TEST(FirstHost, ReadsSlurmsNodeLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[07-09,12],login"), "node07");
  EXPECT_EQ(first_host("login,node[07-09]"), "login");
  EXPECT_EQ(first_host("rack[2,4-5]-ib[0-1],x"), "rack2-ib0");
  EXPECT_THAT([] { first_host("node[1-2"); }, ThrowsMessage<Error>(HasSubstr("']'")));
}

}  // namespace
}  // namespace distributed_utils
