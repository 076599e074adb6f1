// Which part of a model lies in which file, told by its values.
#include "replay/saved.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace replay {
namespace {

// A model of six elements, two of them equal, after each of two epochs.
const std::vector<Flat> kEpochs{{0.1, 0.2, 0.3, 0.3, 0.4, 0.5}, {1.1, 1.2, 1.3, 1.3, 1.4, 1.5}};

SavedFile file_with(const Flat& values) { return {.path = "part", .bytes = 8, .values = values}; }

TEST(Saved, PartsInAnyOrderAreAllOfTheModel) {
  // The state of an optimizer lies beside it.
  const auto saved =
      what_is_saved({file_with({1.3, 1.5, 0.01}), file_with({1.4, 1.3, 1.2, 1.1})}, kEpochs);
  EXPECT_EQ(saved["epoch"], 2);
  EXPECT_EQ(saved["elements"], 6);
  EXPECT_EQ(saved["missing"], 0);
  EXPECT_EQ(saved["several"], 0);
  EXPECT_EQ(saved["older"], 0);
  EXPECT_EQ(saved["files"][0]["own"], 2);
  EXPECT_EQ(saved["files"][1]["own"], 4);
}

TEST(Saved, WhatIsMissingOrThereTwiceIsCounted) {
  const auto saved = what_is_saved({file_with({0.1, 0.2, 0.3}), file_with({0.1, 0.5})}, kEpochs);
  EXPECT_EQ(saved["epoch"], 1);
  EXPECT_EQ(saved["missing"], 2);
  EXPECT_EQ(saved["several"], 1);
}

TEST(Saved, PartsOfTwoMomentsAreToldApart) {
  const auto saved = what_is_saved({file_with({0.1, 0.2, 0.3}), file_with({1.4, 1.5})}, kEpochs);
  EXPECT_EQ(saved["epoch"], 1);
  EXPECT_EQ(saved["missing"], 3);
  EXPECT_EQ(saved["older"], 2);
}

TEST(Saved, RoundedValuesAreOthers) {
  const auto saved = what_is_saved({file_with({double(0.1F), double(0.2F)})}, kEpochs);
  EXPECT_EQ(saved["epoch"], 0);
  EXPECT_EQ(saved["missing"], 6);
}

TEST(Saved, AFileThatCannotBeReadSaysSo) {
  const auto saved = what_is_saved({{.path = "part", .bytes = 8, .values = {}}}, kEpochs);
  EXPECT_EQ(saved["files"][0]["readable"], false);
  EXPECT_EQ(saved["files"][0]["bytes"], 8);
  EXPECT_EQ(saved["epoch"], 0);
}

}  // namespace
}  // namespace replay
