// What plain programs show, held against what it must be. It is computed here: the numbers of all
// ranks follow from the run's seed.
#include <algorithm>
#include <array>
#include <cmath>

#include "instrumentation/numbers.hpp"
#include "judge/collectives.hpp"
#include "judge/rules/mixture.hpp"
#include "judge/rules/rules.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::rules {

namespace {

// The numbers of a world, for one of its ranks.
struct Given {
  RankPlace place;
  std::vector<Numbers> all;  ///< by rank

  size_t world() const { return all.size(); }
  const Numbers& own() const { return all[place.rank]; }
};

template <class Combine>
Numbers combined(const Given& given, Combine combine) {
  auto result = given.all.front();
  for (size_t rank = 1; rank < given.world(); ++rank) {
    for (size_t i = 0; i < result.size(); ++i) result[i] = combine(result[i], given.all[rank][i]);
  }
  return result;
}

Numbers sum(const Given& given) { return combined(given, std::plus<>()); }

Numbers mean(const Given& given) {
  auto result = sum(given);
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

Numbers part_of(const Numbers& numbers, size_t part, size_t parts) {
  const auto size = static_cast<std::ptrdiff_t>(numbers.size() / parts);
  const auto begin = numbers.begin() + size * static_cast<std::ptrdiff_t>(part);
  return {begin, begin + size};
}

Numbers part_of(const Given& given, const Numbers& numbers) {
  return part_of(numbers, given.place.rank, given.world());
}

Numbers one(size_t number) { return {static_cast<double>(number)}; }

// What a result may be. The checker names it by the phrase where something else was expected.
struct ResultKind {
  std::string_view name;
  const char* phrase;
  Numbers (*of)(const Given& given);
};

const std::array<ResultKind, 14> kKinds{{
    {"own", "result.own", [](const Given& given) { return given.own(); }},
    {"sum", "result.sum", sum},
    {"mean", "result.mean", mean},
    {"largest", "result.largest", largest},
    {"stacked", "result.stacked", stacked},
    {"of_rank_0", "result.of_rank_0", [](const Given& given) { return given.all.front(); }},
    {"of_the_left", "result.of_the_left",
     [](const Given& given) {
       return given.all[(given.place.rank + given.world() - 1) % given.world()];
     }},
    {"of_the_right", "result.of_the_right",
     [](const Given& given) { return given.all[(given.place.rank + 1) % given.world()]; }},
    {"part_of_sum", "result.part_of_sum",
     [](const Given& given) { return part_of(given, sum(given)); }},
    {"part_of_mean", "result.part_of_mean",
     [](const Given& given) { return part_of(given, mean(given)); }},
    {"own_part", "result.own_part", [](const Given& given) { return part_of(given, given.own()); }},
    {"rank", "result.rank", [](const Given& given) { return one(given.place.rank); }},
    {"local_rank", "result.local_rank",
     [](const Given& given) { return one(given.place.local_rank); }},
    {"world_size", "result.world_size", [](const Given& given) { return one(given.world()); }},
}};

const ResultKind& kind_named(const ExpectedResult& result) {
  std::vector<std::string> known;
  for (const auto& kind : kKinds) {
    if (kind.name == result.is) return kind;
    known.emplace_back(kind.name);
  }
  throw Error("chapter.yaml: the result " + result.name + " is no " + result.is +
              did_you_mean(result.is, known));
}

std::string in_words(const Numbers& numbers) {
  constexpr size_t kMostShown = 12;
  std::string words;
  for (size_t i = 0; i < std::min(numbers.size(), kMostShown); ++i) {
    words += (i == 0 ? "" : " ") + digits(numbers[i]);
  }
  return words + (numbers.size() > kMostShown ? " ..." : "");
}

std::string sizes_in_words(const std::vector<int64_t>& sizes) {
  std::string words;
  for (const auto size : sizes) words += (words.empty() ? "" : ", ") + std::to_string(size);
  return "[" + words + "]";
}

// What a rank showed last under a name; null: nothing.
const ResultSeen* shown(const RankSeen& rank, const std::string& name) {
  const auto found = std::find_if(rank.results.rbegin(), rank.results.rend(),
                                  [&](const ResultSeen& seen) { return seen.tensor.name == name; });
  return found == rank.results.rend() ? nullptr : &*found;
}

class Results {
 public:
  explicit Results(const RunContext& context) : context_(context) {
    const auto& step = context.step;
    const size_t count = step.numbers + step.numbers_a_rank * context.world();
    for (size_t rank = 0; rank < context.world(); ++rank) {
      all_.push_back(instrumentation::numbers_of_rank(context.plan.seed, rank, count));
    }
  }

  void judge(const ExpectedResult& result, Symptoms& symptoms) const {
    std::vector<size_t> missing, different;
    std::vector<EvidenceLine> lines;
    for (const auto& rank : context_.run().ranks) {
      if (result.on_rank_0 && rank.place.rank != 0) continue;
      const auto* seen = shown(rank, result.name);
      if (!seen) missing.push_back(rank.place.rank);
      if (!seen || is_right(result, rank, *seen)) continue;
      different.push_back(rank.place.rank);
      lines.push_back(line(result, rank, *seen));
      if (lines.size() == 1) add_wrong_parts(result, rank, *seen, lines);
      if (const auto* call = not_awaited(rank)) {
        lines.push_back(seen_call(context_, "not_awaited", rank.place.rank, *call));
      }
    }
    auto values = context_.values();
    values["name"] = result.name;
    if (!missing.empty()) {
      values["ranks"] = ranks_value(missing);
      symptoms.push_back({.id = "result_missing", .values = values, .evidence = {{"world", {}}}});
    }
    if (different.empty()) return;
    values["ranks"] = ranks_value(different);
    symptoms.push_back({.id = "result_differs",
                        .values = values,
                        .evidence = std::move(lines),
                        .variant = context_.step.label()});
  }

 private:
  Given given(const RankSeen& rank) const { return {rank.place, all_}; }

  // A row for each rank, where the numbers of all are asked for; elsewhere the layout is free.
  std::vector<int64_t> shape_of(const ExpectedResult& result) const {
    if (result.is != "stacked") return {};
    const auto rows = static_cast<int64_t>(context_.world());
    return {rows, static_cast<int64_t>(all_.front().size())};
  }

  bool has_shape(const ExpectedResult& result, const ResultSeen& seen) const {
    const auto shape = shape_of(result);
    return shape.empty() || seen.tensor.sizes == shape;
  }

  bool is_right(const ExpectedResult& result, const RankSeen& rank, const ResultSeen& seen) const {
    return has_shape(result, seen) &&
           equal(seen.tensor.values, kind_named(result).of(given(rank)), context_.plan.tolerance);
  }

  EvidenceLine line(const ExpectedResult& result, const RankSeen& rank,
                    const ResultSeen& seen) const {
    const auto expected = kind_named(result).of(given(rank));
    const auto& got = seen.tensor.values;
    if (got.size() != expected.size()) {
      return {"shows_others",
              {{"rank", rank.place.rank}, {"elements", got.size()}, {"wanted", expected.size()}}};
    }
    if (!has_shape(result, seen)) {
      return {"shows_shape",
              {{"rank", rank.place.rank},
               {"got", sizes_in_words(seen.tensor.sizes)},
               {"expected", sizes_in_words(shape_of(result))}}};
    }
    Values values{
        {"rank", rank.place.rank}, {"got", in_words(got)}, {"expected", in_words(expected)}};
    if (const auto* kind = known(result, rank, got)) {
      values["what"] = phrase(kind->phrase);
      return {"shows_known", values};
    }
    if (const auto times = factor(got, expected, context_.plan.tolerance)) {
      values["factor"] = *times;
      return {"shows_multiple", values};
    }
    if (reordered(got, expected, context_.plan.tolerance)) return {"shows_reordered", values};
    if (got.size() == all_.front().size()) {
      if (const auto made_of = mixture(got, all_, context_.plan.tolerance)) {
        values["made_of"] = *made_of;
        return {"shows_mixture", values};
      }
    }
    return {"shows", values};
  }

  // The other result that these numbers are; null: none, or one number that may be several.
  const ResultKind* known(const ExpectedResult& result, const RankSeen& rank,
                          const Numbers& got) const {
    const ResultKind* found = nullptr;
    for (const auto& kind : kKinds) {
      if (kind.name == result.is || !equal(got, kind.of(given(rank)), context_.plan.tolerance)) {
        continue;
      }
      if (got.size() > 1) return &kind;
      if (found) return nullptr;
      found = &kind;
    }
    return found;
  }

  // Of numbers in as many parts as there are ranks: what the wrong ones are made of.
  void add_wrong_parts(const ExpectedResult& result, const RankSeen& rank, const ResultSeen& seen,
                       std::vector<EvidenceLine>& lines) const {
    const auto& got = seen.tensor.values;
    const auto expected = kind_named(result).of(given(rank));
    const size_t world = context_.world(), numbers = all_.front().size();
    const bool rows = result.is == "stacked";
    if (lines.back().name != "shows" || got.size() != expected.size()) return;
    if (!rows && (result.is != "sum" || numbers % world != 0)) return;
    for (size_t part = 0; part < world; ++part) {
      std::vector<Numbers> of_ranks;
      for (const auto& own : all_) of_ranks.push_back(rows ? own : part_of(own, part, world));
      const auto wrong = part_of(got, part, world);
      if (equal(wrong, part_of(expected, part, world), context_.plan.tolerance)) continue;
      const auto made_of = mixture(wrong, of_ranks, context_.plan.tolerance);
      if (!made_of) continue;
      lines.push_back({rows ? "row_is" : "part_is",
                       {{"rank", rank.place.rank}, {"part", part}, {"made_of", *made_of}}});
    }
  }

  const RunContext& context_;
  std::vector<Numbers> all_;
};

}  // namespace

void shown_results(const RunContext& context, Symptoms& symptoms) {
  const Results results(context);
  for (const auto& result : context.step.results) results.judge(result, symptoms);
  // A right result may be luck.
  if (!symptoms.empty() || !context.ended_well()) return;
  for (const auto& rank : context.run().ranks) {
    const auto* call = not_awaited(rank);
    if (!call) continue;
    auto values = context.values();
    values["rank"] = rank.place.rank;
    symptoms.push_back({.id = "work_not_awaited",
                        .values = values,
                        .evidence = {seen_call(context, "not_awaited", rank.place.rank, *call)}});
    return;
  }
}

}  // namespace checker::rules
