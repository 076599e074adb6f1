#include "same_error.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "ranks.hpp"

std::string error_of_all_ranks(const std::function<void()>& call) {
  using namespace distributed_utils;
  static int calls = 0;
  const auto file = [number = ++calls](int rank) {
    return ranks::shared_folder() /
           ("error." + std::to_string(number) + "." + std::to_string(rank));
  };
  std::string mine;
  try {
    call();
  } catch (const Error& error) {
    mine = error.what();
  }
  std::ofstream(file(get_rank())) << mine;
  barrier();
  for (int rank = 0; rank < get_world_size(); ++rank) {
    std::ifstream stream(file(rank));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), mine) << "of rank " << rank;
  }
  return mine;
}
