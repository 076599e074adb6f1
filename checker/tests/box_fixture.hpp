#pragma once
#include <gtest/gtest.h>

#include "box/box.hpp"
#include "support/files.hpp"

namespace checker::testing {

/// A test that shuts programs in, skipped where that cannot be.
class BoxedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = Box({}).refuses()) GTEST_SKIP() << *why;
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  }

  TemporaryFolder folder_;  ///< that everybody may look into
};

}  // namespace checker::testing
