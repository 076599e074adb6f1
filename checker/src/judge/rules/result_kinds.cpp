#include "judge/rules/result_kinds.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::rules {

namespace {

template <class Combine>
Numbers combined(const Given& given, Combine combine) {
  auto result = given.all.front();
  for (size_t rank = 1; rank < given.world(); ++rank) {
    for (size_t i = 0; i < result.size(); ++i) result[i] = combine(result[i], given.all[rank][i]);
  }
  return result;
}

}  // namespace

Numbers part_of(const Numbers& numbers, size_t part, size_t parts) {
  const auto size = static_cast<std::ptrdiff_t>(numbers.size() / parts);
  const auto begin = numbers.begin() + size * static_cast<std::ptrdiff_t>(part);
  return {begin, begin + size};
}

Numbers sum_of(const Given& given) { return combined(given, std::plus<>()); }

namespace {

Numbers mean(const Given& given) {
  auto result = sum_of(given);
  for (auto& number : result) number /= static_cast<double>(given.world());
  return result;
}

Numbers largest(const Given& given) {
  return combined(given, [](double a, double b) { return std::max(a, b); });
}

Numbers stacked(const Given& given) {
  Numbers result;
  for (const auto& numbers : given.all) result.insert(result.end(), numbers.begin(), numbers.end());
  return result;
}

Numbers own_part_of(const Given& given, const Numbers& numbers) {
  return part_of(numbers, given.place.rank, given.world());
}

Numbers one(size_t number) { return {static_cast<double>(number)}; }

const std::array<ResultKind, 14> kKinds{{
    {"own", "result.own", [](const Given& given) { return given.own(); }},
    {"sum", "result.sum", sum_of},
    {"mean", "result.mean", mean},
    {"largest", "result.largest", largest},
    {"stacked", "result.stacked", stacked},
    {"of_the_left", "result.of_the_left",
     [](const Given& given) {
       return given.all[(given.place.rank + given.world() - 1) % given.world()];
     }},
    {"of_the_right", "result.of_the_right",
     [](const Given& given) { return given.all[(given.place.rank + 1) % given.world()]; }},
    {"of_rank_0", "result.of_rank_0", [](const Given& given) { return given.all.front(); }},
    {"part_of_sum", "result.part_of_sum",
     [](const Given& given) { return own_part_of(given, sum_of(given)); }},
    {"part_of_mean", "result.part_of_mean",
     [](const Given& given) { return own_part_of(given, mean(given)); }},
    {"own_part", "result.own_part",
     [](const Given& given) { return own_part_of(given, given.own()); }},
    {"rank", "result.rank", [](const Given& given) { return one(given.place.rank); }},
    {"local_rank", "result.local_rank",
     [](const Given& given) { return one(given.place.local_rank); }},
    {"world_size", "result.world_size", [](const Given& given) { return one(given.world()); }},
}};

}  // namespace

std::span<const ResultKind> result_kinds() { return kKinds; }

const ResultKind& kind_named(const ExpectedResult& result) {
  std::vector<std::string> known;
  for (const auto& kind : kKinds) {
    if (kind.name == result.is) return kind;
    known.emplace_back(kind.name);
  }
  throw Error("chapter.yaml: the result " + result.name + " is no " + result.is +
              did_you_mean(result.is, known));
}

}  // namespace checker::rules
