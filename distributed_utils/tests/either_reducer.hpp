#pragma once
/// Tests of DistributedDataParallel that run with either reducer.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "distributed_utils/ddp.hpp"

/// The one that the running test is to use.
inline distributed_utils::ReducerKind& reducer_kind() {
  static auto kind = distributed_utils::ReducerKind::in_place;
  return kind;
}

/// The options with that reducer.
inline distributed_utils::DistributedDataParallelOptions either(
    distributed_utils::DistributedDataParallelOptions options = {}) {
  options.reducer = reducer_kind();
  return options;
}

inline const auto kEitherReducer = testing::Values(distributed_utils::ReducerKind::in_place,
                                                   distributed_utils::ReducerKind::plain);

inline std::string name_of(distributed_utils::ReducerKind kind) {
  return kind == distributed_utils::ReducerKind::plain ? "Plain" : "InPlace";
}

class EitherReducer : public testing::TestWithParam<distributed_utils::ReducerKind> {
 protected:
  void SetUp() override { reducer_kind() = GetParam(); }
};

/// The same on several numbers of ranks.
class EitherReducerOnRanks
    : public testing::TestWithParam<std::tuple<int, distributed_utils::ReducerKind>> {
 protected:
  void SetUp() override { reducer_kind() = std::get<1>(GetParam()); }
  static int world_size() { return std::get<0>(GetParam()); }
};

struct NameOfReducer {
  std::string operator()(const auto& info) const { return name_of(info.param); }
};
struct NameOfRanksAndReducer {
  std::string operator()(const auto& info) const {
    return std::to_string(std::get<0>(info.param)) + name_of(std::get<1>(info.param));
  }
};
