// Where values lie in a whole model, told by nothing but the values.
#include "replay/fingerprints.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace replay {
namespace {

using checker::TensorSeen;
using ::testing::ElementsAre;
using ::testing::Optional;

const Flat kWhole{0.1, 0.2, 0.3, 0.4, 0.5, 0.6};

TEST(Fingerprints, FindAShardASliceAndTheWhole) {
  const Fingerprints fingerprints(kWhole);
  EXPECT_THAT(fingerprints.places(kWhole), Optional(ElementsAre(0, 1, 2, 3, 4, 5)));
  EXPECT_THAT(fingerprints.places({0.4, 0.5}), Optional(ElementsAre(3, 4)));
  EXPECT_THAT(fingerprints.places({0.1, 0.3, 0.5}), Optional(ElementsAre(0, 2, 4)));  // a column
  EXPECT_THAT(fingerprints.places({0.6, 0.1}), Optional(ElementsAre(5, 0)));
}

TEST(Fingerprints, KnowNoValueThatTheModelDoesNotHave) {
  const Fingerprints fingerprints(kWhole);
  EXPECT_EQ(fingerprints.places({0.1, std::nextafter(0.2, 1)}), std::nullopt);
}

TEST(Fingerprints, FindTheNearestWhereValuesWereComputed) {
  const Fingerprints fingerprints(kWhole, 1e-9);
  EXPECT_THAT(fingerprints.places({0.1 + 1e-12, 0.6 - 1e-12, 0.6 + 1e-12}),
              Optional(ElementsAre(0, 5, 5)));
  EXPECT_EQ(fingerprints.places({0.1 + 1e-8}), std::nullopt);
  EXPECT_EQ(fingerprints.places({std::nan("")}), std::nullopt);
}

// Biases of zeros, norms of ones.
TEST(Fingerprints, OfConstantsAreThoseThatFollow) {
  const Fingerprints fingerprints({0.5, 0, 0, 1, 1, 0.7, 0, 0});
  EXPECT_THAT(fingerprints.places({0.5, 0, 0, 1, 1, 0.7, 0, 0}),
              Optional(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  EXPECT_THAT(fingerprints.places({0.7, 0, 0}), Optional(ElementsAre(5, 6, 7)));
}

TEST(Fingerprints, AModelIsReadInAnyOrder) {
  const std::vector<TensorSeen> model{{.name = "a", .elements = 2, .values = {1, 2}},
                                      {.name = "b", .elements = 1, .values = {3}}};
  EXPECT_THAT(in_order(model, {{.name = "b", .elements = 1}, {.name = "a", .elements = 2}}),
              Optional(ElementsAre(3, 1, 2)));
  EXPECT_EQ(in_order(model, {{.name = "c", .elements = 1}}), std::nullopt);
  EXPECT_EQ(in_order(model, {{.name = "a", .elements = 1}}), std::nullopt);
}

}  // namespace
}  // namespace replay
