#include "judge/run_context.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "evidence/collective_kinds.hpp"

namespace checker {

bool RunContext::expects(std::string_view name) const {
  course.todo_of(name);  // a name misspelt in a rule is not one that the step lacks
  return features.contains(std::string(name));
}

std::string RunContext::started_with(std::string_view option) const {
  const auto found = std::find(plan.options.rbegin(), plan.options.rend(), option);
  return found == plan.options.rend() || found == plan.options.rbegin() ? "" : *std::prev(found);
}

bool RunContext::ended_well() const {
  return run().result.success() &&
         std::ranges::all_of(run().ranks, [](const RankSeen& rank) { return rank.left_regularly; });
}

bool RunContext::are_first_on_other_nodes(const std::vector<size_t>& ranks) const {
  std::vector<size_t> first;
  for (const auto& rank : run().ranks) {
    if (rank.place.local_rank == 0 && rank.place.node > 0) first.push_back(rank.place.rank);
  }
  return !first.empty() && ranks == first;
}

namespace {

// What rounding may do to sums of some hundred terms, in the narrowest type of these parameters.
double rounding_of(const Run& run) {
  double most = 0;
  for (const auto& rank : run.ranks) {
    for (const auto& parameter : rank.parameters) {
      const auto type = element_name(static_cast<int8_t>(parameter.scalar_type));
      if (type == "float32") most = std::max(most, 1e-4);
      if (type == "float16" || type == "bfloat16") most = std::max(most, 5e-2);
    }
  }
  return most;
}

}  // namespace

double RunContext::tolerance() const { return std::max(plan.tolerance, rounding_of(run())); }

double RunContext::gradient_tolerance() const {
  return std::max(plan.gradient_tolerance, rounding_of(run()));
}

double RunContext::loss_tolerance() const {
  return std::max(plan.loss_tolerance, rounding_of(run()));
}

std::string name_of(Split split) {
  constexpr std::array<const char*, 3> names{"training", "validation", "test"};
  const auto place = static_cast<size_t>(split);
  return place < names.size() ? names.at(place) : "another";
}

std::string first_few(const std::vector<uint64_t>& ids, size_t count) {
  std::string text;
  for (size_t i = 0; i < std::min(count, ids.size()); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(ids[i]);
  }
  return ids.size() > count ? text + " ..." : text;
}

std::string digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string kilobytes(double bytes) { return std::to_string(std::llround(bytes / 1000)) + " kB"; }

Value ranks_value(const std::vector<size_t>& ranks) {
  Value value(ranks.size() == 1 ? "rank " : "ranks ");
  value.count = ranks.size();
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) value.text += i + 1 == ranks.size() ? " and " : ", ";
    value.text += std::to_string(ranks[i]);
  }
  return value;
}

Value phrase(std::string name) {
  Value value(std::move(name));
  value.phrase = true;
  return value;
}

}  // namespace checker
