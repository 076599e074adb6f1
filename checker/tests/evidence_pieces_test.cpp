// Ranks that train pieces of a model.
#include <gmock/gmock.h>

#include "evidence/run.hpp"
#include "log_writer.hpp"

namespace checker {
namespace {

namespace format = instrumentation;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An optimizer that holds no parameter of the model, but parts of them.
LogWriter pieces_of_a_model() {
  constexpr uint64_t kNone = format::kUnknownPlace;
  LogWriter log;
  log.add(Kind::model, LogWriter::tensor("w", 7, 4));
  log.add(Kind::pieces, LogWriter::tensor("", 7, 2));
  log.add(Kind::stepping, kNone, kNone);
  log.add(Kind::values, 0.1, 0.2).add(Kind::gradients, 0.3, 0.4);
  log.add(Kind::allocated,
          format::AllocatedRecord{
              .moment = format::Moment::step_ends, .live = 5, .most = 9, .least = 3});
  log.add(Kind::collective, format::CollectiveRecord{});
  log.add(Kind::unit, format::UnitRecord{format::UnitRecord::Event::gather_issued},
          std::string("layers.1"));
  log.add(Kind::unit, format::UnitRecord{format::UnitRecord::Event::freed},
          std::string("layers.0"));
  return log;
}

TEST(Evidence, PiecesAreStepsOfTheModelWhereTheyAreLookedFor) {
  const auto rank = read(pieces_of_a_model(), 1, Holding::parameters_or_pieces);
  EXPECT_TRUE(rank.in_pieces);
  ASSERT_EQ(rank.steps.size(), 1U);
  EXPECT_THAT(rank.steps[0].values, ElementsAre(0.1, 0.2));
  EXPECT_THAT(rank.steps[0].gradients, ElementsAre(0.3, 0.4));
  EXPECT_EQ(rank.model.size(), 1U);
  EXPECT_EQ(rank.parameters.size(), 1U);
}

TEST(Evidence, PiecesAreOfTheModelThatHasTheirFirstValues) {
  constexpr uint64_t kNone = format::kUnknownPlace;
  const auto model = [](double first) {
    const double values[] = {first, first + 1};
    return LogWriter::tensor("w", 7, 2, {reinterpret_cast<const char*>(values), sizeof values});
  };
  LogWriter log;
  log.add(Kind::model, model(1)).add(Kind::model, model(3)).add(Kind::model, model(5));
  log.add(Kind::pieces, LogWriter::tensor("", 7, 1));
  log.add(Kind::stepping, kNone, kNone).add(Kind::values, 4.0).add(Kind::gradients, 0.5);
  const auto rank = read(log, 1, Holding::parameters_or_pieces);
  ASSERT_EQ(rank.model.size(), 1U);
  EXPECT_THAT(rank.model[0].values, ElementsAre(3, 4));
}

TEST(Evidence, ElsewhereTheyBelongToAnotherModel) {
  const auto rank = read(pieces_of_a_model());
  EXPECT_FALSE(rank.in_pieces);
  EXPECT_THAT(rank.steps, IsEmpty());
}

TEST(Evidence, KnowsTheMemoryAndTheUnitOfACollective) {
  const auto rank = read(pieces_of_a_model());
  ASSERT_EQ(rank.memory.size(), 1U);
  EXPECT_EQ(rank.memory[0].bytes.most, 9U);
  ASSERT_EQ(rank.collectives.size(), 1U);
  EXPECT_EQ(rank.collectives[0].unit, "layers.1");
}

}  // namespace
}  // namespace checker
