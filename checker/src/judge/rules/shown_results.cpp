// What plain programs show, held against what it must be. It is computed here: the numbers of all
// ranks follow from the run's seed.
#include <algorithm>
#include <cmath>

#include "instrumentation/numbers.hpp"
#include "judge/collectives.hpp"
#include "judge/rules/mixture.hpp"
#include "judge/rules/result_kinds.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

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

// Ranks have neighbours where an exercise speaks of them; elsewhere they are called by their
// numbers.
bool names_neighbours(std::string_view kind) {
  return kind == "of_the_left" || kind == "of_the_right";
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
    bool left_before = false;
    for (const auto& rank : context_.run().ranks) {
      if (result.on_rank_0 && rank.place.rank != 0) continue;
      const auto* seen = shown(rank, result.name);
      if (!seen) missing.push_back(rank.place.rank);
      if (!seen || is_right(result, rank, *seen)) continue;
      different.push_back(rank.place.rank);
      left_before = left_before || (rank.shutdown_event && *rank.shutdown_event < seen->event);
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
    auto variant = left_before ? "left_before" : variant_of(lines.front());
    symptoms.push_back({.id = "result_differs",
                        .values = values,
                        .evidence = std::move(lines),
                        .variant = std::move(variant)});
  }

 private:
  Given given(const RankSeen& rank) const { return {rank.place, all_}; }

  // Where all numbers are wrong in one way, that is said; elsewhere what the exercise is about.
  std::string variant_of(const EvidenceLine& first) const {
    if (first.name == "shows_shape" || first.name == "shows_others") return "shape";
    if (first.name == "shows_reordered") return "order";
    if (first.name == "shows_other_places") return "places";
    return context_.step.label();
  }

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
    if (const auto places = other_places(result, rank, got)) {
      values["places"] = *places;
      return {"shows_other_places", values};
    }
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
    for (const auto& kind : result_kinds()) {
      if (names_neighbours(kind.name) && !names_neighbours(result.is)) continue;
      if (kind.name == result.is || !equal(got, kind.of(given(rank)), context_.plan.tolerance)) {
        continue;
      }
      if (got.size() > 1) return &kind;
      if (found) return nullptr;
      found = &kind;
    }
    return found;
  }

  // Where among all sums those stand that a rank shows as its part: "2, 5, 8".
  std::optional<std::string> other_places(const ExpectedResult& result, const RankSeen& rank,
                                          const Numbers& got) const {
    if (result.is != "part_of_sum") return std::nullopt;
    const auto all = sum_of(given(rank));
    std::string places;
    for (const double number : got) {
      const auto found = std::ranges::find_if(
          all, [&](double sum) { return equal({sum}, {number}, context_.plan.tolerance); });
      if (found == all.end()) return std::nullopt;
      places += (places.empty() ? "" : ", ") + std::to_string(found - all.begin());
    }
    return places;
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
