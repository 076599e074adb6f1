#include "distributed_utils/print.hpp"

#include <gmock/gmock.h>

#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

TEST(Print0, PrintsOnRankZeroAlone) {
  ranks::run(3, [] {
    const World world = setup();
    testing::internal::CaptureStdout();
    print0("epoch {}: loss {:.2f}", 1, 2.345);
    print0("no arguments");
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              world.rank == 0 ? "epoch 1: loss 2.35\nno arguments\n" : "");
  });
}

TEST(Print0, PrintsInASerialProgram) {
  testing::internal::CaptureStdout();
  print0("{}", "alone");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "alone\n");
}

}  // namespace
}  // namespace distributed_utils
