#pragma once
/// What the results of plain programs may be, computed of the numbers that the ranks are given.
#include <span>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "judge/rules/mixture.hpp"
#include "process/trainer.hpp"

namespace checker::rules {

/// The numbers of a world, for one of its ranks.
struct Given {
  RankPlace place;
  std::vector<Numbers> all;  ///< by rank

  size_t world() const { return all.size(); }
  const Numbers& own() const { return all[place.rank]; }
};

/// What a result may be. The checker names it by the phrase where something else was expected.
struct ResultKind {
  std::string_view name;
  const char* phrase;
  Numbers (*of)(const Given& given);
};

std::span<const ResultKind> result_kinds();

/// The one that the exercise asks for. Throws Error if there is none of that name.
const ResultKind& kind_named(const ExpectedResult& result);

/// One of so many equal parts.
Numbers part_of(const Numbers& numbers, size_t part, size_t parts);

/// The sum over all ranks, number by number.
Numbers sum_of(const Given& given);

}  // namespace checker::rules
