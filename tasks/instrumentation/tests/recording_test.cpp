#include "instrumentation/recording.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/print.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
#include "log.hpp"
#include "ranks.hpp"

namespace instrumentation {
namespace {

using namespace distributed_utils;  // NOLINT(google-build-using-namespace)
using namespace recording;          // NOLINT(google-build-using-namespace)

// In a process of its own, which decides once and for all.
TEST(Recording, IsOffUnlessAsked) {
  ranks::run(1, [] {
    EXPECT_FALSE(enabled());
    record_text(Kind::device, "cpu");  // goes nowhere, harms nothing
  });
}

TEST(Recording, SeesEachCollectiveWithWhatTellsItFromOthers) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        const World world = setup();
        all_reduce(torch::ones({3, 4}, torch::kDouble), ReduceOp::MAX);
        broadcast(torch::ones({5}, torch::kFloat), 1);
        all_gather(torch::ones({2}, torch::kLong));
        reduce_scatter(torch::ones({4}), ReduceOp::SUM);
        reduce(torch::ones({3}), 1, ReduceOp::MIN);
        barrier();
        const Log log = read_log(path);
        ASSERT_EQ(log.of(Kind::group).size(), 1U);
        const auto group = log.of(Kind::group)[0].as<GroupRecord>();
        EXPECT_EQ(group.rank, static_cast<uint32_t>(world.rank));
        EXPECT_EQ(group.size, 2U);
        const auto records = log.of(Kind::collective);
        ASSERT_EQ(records.size(), 6U);
        using c10d::OpType;
        const OpType types[] = {OpType::ALLREDUCE,       OpType::BROADCAST,
                                OpType::_ALLGATHER_BASE, OpType::_REDUCE_SCATTER_BASE,
                                OpType::REDUCE,          OpType::BARRIER};
        const uint64_t elements[] = {12, 5, 2, 4, 3, 0};
        const int roots[] = {-1, 1, -1, -1, 1, -1};
        for (size_t i = 0; i < records.size(); ++i) {
          const auto call = records[i].as<CollectiveRecord>();
          EXPECT_EQ(call.sequence, i);
          EXPECT_EQ(static_cast<OpType>(call.op_type), types[i]);
          EXPECT_EQ(call.elements, elements[i]);
          EXPECT_EQ(call.root, roots[i]);
          EXPECT_GT(call.frames, 3U);
        }
        const auto ends = log.of(Kind::completed).size();
        EXPECT_GE(ends, 5U);  // the barrier's own callback may still be under way
        const auto first = records[0].as<CollectiveRecord>();
        EXPECT_EQ(first.reduce_op, c10d::ReduceOp::MAX);
        EXPECT_EQ(first.scalar_type, static_cast<int8_t>(torch::kDouble));
      },
      kRecording);
}

// As autograd's threads do on GPUs.
TEST(Recording, AnotherThreadsCallsShowWhereTheMainThreadWas) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        setup();
        const auto call = [] { all_reduce(torch::ones({1})); };
        std::thread(call).join();
        note_place();
        std::thread(call).join();
        const auto records = read_log(path).of(Kind::collective);
        ASSERT_EQ(records.size(), 2U);
        EXPECT_GT(records[1].as<CollectiveRecord>().frames,
                  records[0].as<CollectiveRecord>().frames);
      },
      kRecording);
}

TEST(Recording, OnlyTheRankThatPrintsAndWritesSaysSo) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        const auto world = setup();
        print0("once");
        const auto file = std::filesystem::path(path).replace_extension("safetensors");
        save0(*torch::nn::Linear(2, 2), file);
        const Log log = read_log(path);
        const uint64_t expected = world.rank == 0 ? 1 : 0;
        for (const auto kind : {Kind::printed, Kind::saved}) {
          ASSERT_EQ(log.of(kind).size(), 1U);
          EXPECT_EQ(log.of(kind)[0].as<uint64_t>(), expected);
        }
      },
      kRecording);
}

// wait() would miss these: the Reducer takes futures only.
TEST(Recording, SeesTheReducersCollectivesBeginAndEnd) {
  ranks::run(
      3,
      [] {
        const auto path = make_log();
        setup();
        auto linear = torch::nn::Linear(8, 8);
        const auto model = DistributedDataParallel(
            linear.ptr(), {.bucket_cap_bytes = 64, .first_bucket_bytes = 64});
        for (int step = 0; step < 3; ++step) model->forward(torch::ones({1, 8})).sum().backward();
        barrier();
        const Log log = read_log(path);
        std::set<uint64_t> begun;
        for (const auto& record : log.of(Kind::collective)) {
          begun.insert(record.as<CollectiveRecord>().sequence);
        }
        EXPECT_GT(begun.size(), 8U);
        for (const auto& record : log.of(Kind::completed)) {
          EXPECT_EQ(record.as<CompletedRecord>().failed, 0U);
          begun.erase(record.as<CompletedRecord>().sequence);
        }
        // The barrier's own callback may still be under way.
        EXPECT_LE(begun.size(), 1U);
      },
      kRecording);
}

TEST(Recording, ARankThatDiesHasSpoken) {
  ranks::run(
      1,
      [] {
        const auto path = make_log();
        const pid_t child = fork();
        if (child == 0) {
          setup();
          all_reduce(torch::ones({7}));
          raise(SIGKILL);
        }
        int status = 0;
        waitpid(child, &status, 0);
        const Log log = read_log(path);
        ASSERT_EQ(log.of(Kind::collective).size(), 1U);
        EXPECT_EQ(log.of(Kind::collective)[0].as<CollectiveRecord>().elements, 7U);
        EXPECT_TRUE(log.of(Kind::exit).empty());
      },
      kRecording);
}

TEST(Recording, ThreadsDoNotDisturbEachOtherAndAFullLogCounts) {
  ranks::run(
      1,
      [] {
        const auto path = make_log(1 << 20);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 4; ++thread) {
          threads.emplace_back([thread] {
            const std::string text(100 + thread, static_cast<char>('a' + thread));
            for (int i = 0; i < 3000; ++i) record_text(Kind::device, text);
          });
        }
        for (auto& thread : threads) thread.join();
        const Log log = read_log(path);
        EXPECT_GT(log.header.dropped, 0U);
        EXPECT_EQ(log.of(Kind::device).size() + log.header.dropped, 12000U);
        for (const auto& record : log.of(Kind::device)) {
          const char letter = record.payload[0];
          EXPECT_EQ(record.payload, std::string(100 + letter - 'a', letter));
        }
      },
      kRecording);
}

TEST(Recording, SaysWhereTheRankRuns) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        const auto world = setup();
        const Log log = read_log(path);
        EXPECT_EQ(log.header.rank, static_cast<uint32_t>(world.rank));
        EXPECT_EQ(log.header.local_rank, static_cast<uint32_t>(world.local_rank));
        EXPECT_EQ(log.header.world_size, 2U);
        EXPECT_EQ(log.header.node, 0U);
        EXPECT_EQ(log.header.process, static_cast<uint32_t>(getpid()));
      },
      kRecording);
}

// Between the call and the wait the program computes: the two overlap.
TEST(Recording, SeesWhenACallIsWaitedForAndWhatIsComputedMeanwhile) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        setup();
        std::vector<at::Tensor> tensors = {torch::ones({5})};
        const auto work = world_group()->allreduce(tensors);
        for (int i = 0; i < 3; ++i) torch::mm(torch::ones({2, 2}), torch::ones({2, 2}));
        work->wait();
        const Log log = read_log(path);
        const auto call = log.of(Kind::collective).at(0).as<CollectiveRecord>();
        const auto waits = log.of(Kind::waited);
        ASSERT_EQ(waits.size(), 2U);
        EXPECT_EQ(waits[0].as<WaitedRecord>().sequence, call.sequence);
        EXPECT_EQ(waits[0].as<WaitedRecord>().done, 0U);
        EXPECT_EQ(waits[0].as<WaitedRecord>().products, call.products + 3);
        EXPECT_EQ(waits[1].as<WaitedRecord>().done, 1U);
      },
      kRecording);
}

// Who asks until a call has ended has waited. Who takes its future may wait for that, unseen.
TEST(Recording, SeesOtherWaysToWait) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        setup();
        std::vector<at::Tensor> tensors = {torch::ones({5})};
        const auto asked = world_group()->allreduce(tensors);
        while (!asked->isCompleted()) std::this_thread::yield();
        world_group()->allreduce(tensors)->getFuture()->wait();
        const Log log = read_log(path);
        const auto waits = log.of(Kind::waited);
        ASSERT_EQ(waits.size(), 2U);
        EXPECT_EQ(waits[0].as<WaitedRecord>().sequence, 0U);
        EXPECT_EQ(waits[0].as<WaitedRecord>().done, 1U);
        EXPECT_EQ(waits[1].as<WaitedRecord>().sequence, 1U);
        EXPECT_EQ(waits[1].as<WaitedRecord>().done, kFutureTaken);
      },
      kRecording);
}

TEST(Recording, SendAndReceiveNameTheOtherRankAndTheTag) {
  ranks::run(
      2,
      [] {
        const auto path = make_log();
        const auto world = setup();
        std::vector<at::Tensor> tensors = {torch::ones({5})};
        const bool sends = world.rank == 0;
        const auto work = sends ? world_group()->send(tensors, 1, /*tag=*/7)
                                : world_group()->recv(tensors, 0, /*tag=*/7);
        work->wait();
        const Log log = read_log(path);
        const auto call = log.of(Kind::collective).at(0).as<CollectiveRecord>();
        EXPECT_EQ(static_cast<c10d::OpType>(call.op_type),
                  sends ? c10d::OpType::SEND : c10d::OpType::RECV);
        EXPECT_EQ(call.root, 1 - world.rank);
        EXPECT_EQ(call.tag, 7);
        EXPECT_EQ(log.of(Kind::completed).size(), 1U);
      },
      kRecording);
}

}  // namespace
}  // namespace instrumentation
