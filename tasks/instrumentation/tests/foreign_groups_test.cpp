// What a program makes without distributed_utils is recorded too.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/launch.hpp"
#include "distributed_utils/setup.hpp"
#include "instrumentation/recording.hpp"
#include "log.hpp"
#include "ranks.hpp"

namespace instrumentation {
namespace {

using namespace distributed_utils;  // NOLINT(google-build-using-namespace)
using c10d::OpType;
using c10d::ProcessGroup;
using recording::enabled;

int environment_number(const char* name) { return std::stoi(process_environment(name).value()); }

c10::intrusive_ptr<c10d::ProcessGroupGloo> make_bare_gloo() {
  const int size = environment_number("WORLD_SIZE");
  const auto store = c10::make_intrusive<c10d::FileStore>(ranks::shared_folder() / "own", size);
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, environment_number("RANK"), size,
                                                     options);
}

c10::intrusive_ptr<ProcessGroup> make_own_group() {
  const auto gloo = make_bare_gloo();
  auto group = c10::make_intrusive<ProcessGroup>(nullptr, gloo->getRank(), gloo->getSize());
  group->setBackend(c10::kCPU, ProcessGroup::GLOO, gloo);
  group->setDefaultBackend(ProcessGroup::GLOO);
  group->setGroupName("mine");
  return group;
}

struct Expected {
  OpType type;
  uint64_t elements;
  int root;
  int op;
};

void expect_calls(const Log& log, uint32_t group, const std::vector<Expected>& expected) {
  std::vector<CollectiveRecord> calls;
  for (const auto& record : log.of(Kind::collective)) {
    const auto call = record.as<CollectiveRecord>();
    if (call.group == group) calls.push_back(call);
  }
  ASSERT_EQ(calls.size(), expected.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].sequence, i);
    EXPECT_EQ(static_cast<OpType>(calls[i].op_type), expected[i].type);
    EXPECT_EQ(calls[i].elements, expected[i].elements);
    EXPECT_EQ(calls[i].root, expected[i].root);
    EXPECT_EQ(calls[i].reduce_op, expected[i].op);
  }
}

TEST(ForeignGroups, AGroupMadeByHandIsRecorded) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        ASSERT_TRUE(enabled());
        const auto group = make_own_group();
        std::vector<at::Tensor> three = {torch::ones({3}, torch::kDouble)};
        group->allreduce(three, {.reduceOp = c10d::ReduceOp::MAX})->wait();
        group->broadcast(three, {.rootRank = 1})->wait();
        group->reduce(three, {.reduceOp = c10d::ReduceOp::SUM, .rootRank = 1})->wait();
        std::vector<std::vector<at::Tensor>> all = {{torch::ones({3}), torch::ones({3})}};
        std::vector<at::Tensor> floats = {torch::ones({3})};
        group->allgather(all, floats)->wait();
        group->barrier()->wait();
        const Log log = read_log(path);
        const auto groups = log.of(Kind::group);
        ASSERT_EQ(groups.size(), 1U);
        const auto made = groups[0].as<GroupRecord>();
        EXPECT_EQ(made.size, 2U);
        EXPECT_EQ(made.rank, static_cast<uint32_t>(group->getRank()));
        EXPECT_EQ(groups[0].payload.substr(sizeof made), "mine");  // and no ranks: unknown
        expect_calls(log, made.group,
                     {{OpType::ALLREDUCE, 3, -1, c10d::ReduceOp::MAX},
                      {OpType::BROADCAST, 3, 1, 255},
                      {OpType::REDUCE, 3, 1, c10d::ReduceOp::SUM},
                      {OpType::ALLGATHER, 3, -1, 255},
                      {OpType::BARRIER, 0, -1, 255}});
        EXPECT_GE(log.of(Kind::completed).size(), 4U);  // the barrier's may still be under way
      },
      kRecording);
}

TEST(ForeignGroups, ABareBackendIsRecorded) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        ASSERT_TRUE(enabled());
        const auto gloo = make_bare_gloo();
        std::vector<at::Tensor> five = {torch::ones({5})};
        gloo->allreduce(five)->wait();
        gloo->barrier()->wait();
        const Log log = read_log(path);
        ASSERT_EQ(log.of(Kind::group).size(), 1U);
        expect_calls(log, log.of(Kind::group)[0].as<GroupRecord>().group,
                     {{OpType::ALLREDUCE, 5, -1, 255}, {OpType::BARRIER, 0, -1, 255}});
        EXPECT_GE(log.of(Kind::completed).size(), 1U);
      },
      kRecording);
}

TEST(ForeignGroups, StandBesideTheWorldAndNothingIsRecordedTwice) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        setup();
        const auto own = make_own_group();
        const auto tensor = torch::ones({4});
        all_reduce(tensor);
        std::vector<at::Tensor> tensors = {tensor};
        own->allreduce(tensors)->wait();
        all_reduce(tensor);
        const Log log = read_log(path);
        const Expected sum = {OpType::ALLREDUCE, 4, -1, c10d::ReduceOp::SUM};
        ASSERT_EQ(log.of(Kind::group).size(), 2U);
        expect_calls(log, log.of(Kind::group)[0].as<GroupRecord>().group, {sum, sum});
        expect_calls(log, log.of(Kind::group)[1].as<GroupRecord>().group, {sum});
      },
      kRecording);
}

}  // namespace
}  // namespace instrumentation
