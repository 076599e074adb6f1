#include "judge/rules/shares.hpp"

#include <algorithm>

namespace checker::rules {

std::vector<EvidenceLine> ids_by_rank(const std::vector<const Pass*>& passes) {
  std::vector<EvidenceLine> lines;
  for (size_t rank = 0; rank < passes.size(); ++rank) {
    const auto ids = passes[rank]->ids();
    lines.push_back({"took", {{"rank", rank}, {"count", ids.size()}, {"samples", first_few(ids)}}});
  }
  return lines;
}

std::map<uint64_t, size_t> counts_of(const std::vector<const Pass*>& passes) {
  std::map<uint64_t, size_t> counts;
  for (const auto* pass : passes) {
    for (const auto id : pass->ids()) ++counts[id];
  }
  return counts;
}

bool Shares::copied(const std::vector<const Pass*>& passes, uint64_t slack) const {
  return context_.world() > 1 && std::ranges::all_of(passes, [&](const Pass* pass) {
           return pass->ids().size() + slack >= size_;
         });
}

void Shares::add(Symptom symptom) {
  symptom.values.merge(context_.values());
  symptom.values["split"] = name_of(split_);
  symptom.values["size"] = size_;
  symptom.evidence.insert(symptom.evidence.begin(), {"split_size", {}});
  symptoms_.push_back(std::move(symptom));
}

void Shares::add_not_shared(const std::vector<EvidenceLine>& evidence) {
  const auto& ranks = context_.run().ranks;
  const auto split = name_of(split_);
  // Somebody makes a sampler for this split, and it is not the right one. That comes first: the
  // loader may still be left to do.
  if (const auto problem = sampler_problem(context_, split_)) {
    add({.id = split + "_sampler_wrong",
         .evidence = {problem->seen},
         .variant = problem->variant,
         .blame = {"sampler." + split}});
    add({.id = split + "_not_shared",
         .evidence = evidence,
         .blame = {"loader." + split},
         .kind = FindingKind::not_started});
    return;
  }
  const bool no_samplers =
      std::ranges::all_of(ranks, [](const RankSeen& rank) { return rank.samplers.empty(); });
  const bool begun = !right_sampler(context_, split_) && !no_samplers;
  add({.id = split + "_not_shared",
       .evidence = evidence,
       .blame = {sampler_or_loader(context_, split_)},
       .kind = begun ? FindingKind::mistake : FindingKind::not_started});
}

// Whether the rank has gone through the validation once an epoch before it makes this fetch, and
// through a part of it once more. A loader that asks for samples that are not there gets through no
// epoch: it is another loader that asks, with this split's data.
bool Shares::asks_for_the_test(size_t rank, const FetchSeen& last) const {
  if (split_ != Split::validation) return false;
  std::map<uint64_t, size_t> times;
  for (const auto& fetch : context_.run().ranks[rank].fetches) {
    if (fetch.split != split_) continue;
    if (fetch.event >= last.event) break;
    for (const auto id : fetch.ids) ++times[id];
  }
  const size_t epochs = epochs_to_train(context_, context_.run().ranks[rank]);
  return std::ranges::any_of(times, [&](const auto& seen) { return seen.second > epochs; });
}

bool Shares::out_of_range() {
  for (size_t rank = 0; rank < context_.world(); ++rank) {
    for (const auto& fetch : context_.run().ranks[rank].fetches) {
      if (fetch.split != split_) continue;
      const auto beyond = std::ranges::find_if(fetch.ids, [&](uint64_t id) { return id >= size_; });
      if (beyond == fetch.ids.end()) continue;
      if (asks_for_the_test(rank, fetch)) {
        add({.id = "test_on_another_split",
             .values = {{"meant", name_of(Split::test)}, {"used", name_of(split_)}},
             .evidence = {{"asked", {{"rank", rank}, {"sample", *beyond}}}}});
        return true;
      }
      add({.id = "sampler_of_another_split",
           .evidence = {{"asked", {{"rank", rank}, {"sample", *beyond}}}},
           .blame = {sampler_or_loader(context_, split_)}});
      return true;
    }
  }
  return false;
}

}  // namespace checker::rules
