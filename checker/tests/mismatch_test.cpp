// Ranks that disagree about a collective: over Gloo some hang, one aborts, some go on with wrong
// numbers. All are told, soon, with what each rank called.
#include <gmock/gmock.h>

#include "edited.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;

struct Mismatch {
  const char* name;
  const char* code;     ///< after the model is wrapped
  const char* finding;  ///< one of these, separated by blanks
  const char* first;    ///< what the evidence says of two ranks
  const char* second;
};

void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

const Mismatch kMismatches[] = {
    {"Kind", "if (rank == 0) all_reduce(three); else broadcast(three, 0);",
     "ranks_meet_in_different_collectives", "all_reduce of 3 float64 (SUM)",
     "broadcast of 3 float64 from rank 0"},
    {"Size", "if (rank == 0) all_reduce(three); else all_reduce(four);",
     "dies_of_mismatched_collectives ranks_meet_in_different_collectives",
     "all_reduce of 3 float64", "all_reduce of 4 float64"},
    {"Type", "if (rank == 0) all_reduce(three); else all_reduce(three.to(torch::kLong));",
     "collectives_differ", "all_reduce of 3 float64", "all_reduce of 3 int64"},
    {"ReduceOp", "all_reduce(three, rank == 0 ? ReduceOp::SUM : ReduceOp::MAX);",
     "collectives_differ", "(SUM)", "(MAX)"},
    {"Root", "broadcast(three, rank == 0 ? 0 : 1);",
     "ranks_meet_in_different_collectives collectives_differ", "from rank 0", "from rank 1"},
    {"Order",
     "if (rank == 0) { all_reduce(three); barrier(); } else { barrier(); all_reduce(three); }",
     "ranks_meet_in_different_collectives", "all_reduce of 3 float64 (SUM)", "barrier"},
    {"OneIsElsewhere", "if (rank == 0) all_reduce(three); else while (true) sleep(1);",
     "ranks_wait_for_each_other", "rank 0 waits in all_reduce of 3 float64 (SUM), called at",
     "rank 1 is not in a collective"},
    {"OneHasLeft", "if (rank == 0) all_reduce(three); else std::exit(0);", "rank_left_early",
     "all_reduce of 3 float64 (SUM)", "rank 1 has left the program"},
};

class MismatchTest : public ::testing::TestWithParam<Mismatch> {};

Report judge(const std::string& name) {
  static EditedSolutions solutions = [] {
    std::vector<EditedSolution> all;
    for (const auto& mismatch : kMismatches) {
      all.push_back({std::string("mismatch_") + mismatch.name, "04",
                     "  const auto model = DistributedDataParallel(module);\n",
                     std::string("  const auto three = torch::ones({3}, torch::kDouble);\n"
                                 "  [[maybe_unused]] const auto four = torch::ones({4}, "
                                 "torch::kDouble);\n  ") +
                         mismatch.code});
    }
    return EditedSolutions(all);
  }();
  return solutions.judge("mismatch_" + name, {2});
}

TEST_P(MismatchTest, IsToldWithWhatEachRankCalled) {
  const auto report = judge(GetParam().name);
  const auto* finding = report.first_finding();
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(GetParam().finding, HasSubstr(finding->id)) << finding->what;
  EXPECT_EQ(finding->todo, 8);
  std::string evidence;
  for (const auto& line : finding->evidence) evidence += line + "\n";
  EXPECT_THAT(evidence, HasSubstr(GetParam().first));
  EXPECT_THAT(evidence, HasSubstr(GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(All, MismatchTest, testing::ValuesIn(kMismatches),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker
