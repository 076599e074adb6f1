#include <algorithm>
#include <set>

#include "judge/rules/shares.hpp"

namespace checker::rules {

namespace {

class EvaluationShares : public Shares {
 public:
  using Shares::Shares;

  // Where every rank ended, each evaluates after every epoch after which another does.
  bool by_some_ranks() {
    if (!context_.ended_well()) return false;
    std::vector<size_t> without;
    const size_t last = epochs_trained(context_);
    for (size_t epoch = split_ == Split::test ? last : 1; epoch <= last && without.empty();
         ++epoch) {
      const auto by_rank = evaluations_after(context_, split_, epoch);
      for (size_t rank = 0; rank < by_rank.size(); ++rank) {
        if (by_rank[rank].empty()) without.push_back(rank);
      }
      if (without.size() == by_rank.size()) without.clear();
    }
    if (without.empty()) return false;
    add({.id = name_of(split_) + "_by_some_ranks",
         .evidence = {{"less", {{"ranks", ranks_value(without)}}}}});
    return true;
  }

  // As many samples as another split has: a loader with that split's sampler asks for them.
  bool dealt_by_anothers_sampler() const {
    const auto asked = fetched();
    return std::ranges::any_of(context_.run().ranks.front().samplers, [&](const auto& sampler) {
      return sampler.dataset_size == asked && asked != size_;
    });
  }

  // How many of the split's samples some rank was given, used or not.
  size_t fetched() const {
    std::set<uint64_t> all;
    for (const auto& rank : context_.run().ranks) {
      for (const auto& fetch : rank.fetches) {
        if (fetch.split == split_) all.insert(fetch.ids.begin(), fetch.ids.end());
      }
    }
    return all.size();
  }

  bool judge(const std::vector<const Pass*>& passes) {
    auto evidence = ids_by_rank(passes);
    if (copied(passes, 0)) {
      add_not_shared(evidence);
      return true;
    }
    const auto counts = counts_of(passes);
    std::vector<uint64_t> twice;
    for (const auto& [id, count] : counts) {
      if (count > 1) twice.push_back(id);
    }
    if (twice.empty() && counts.size() >= size_) return false;
    auto symptom = twice.empty() ? left_out() : counted_twice();
    evidence.push_back(twice.empty() ? EvidenceLine{"only", {{"count", counts.size()}}}
                                     : EvidenceLine{"twice", {{"samples", first_few(twice)}}});
    std::ranges::move(symptom.evidence, std::back_inserter(evidence));
    symptom.evidence = std::move(evidence);
    add(std::move(symptom));
    return true;
  }

 private:
  Symptom counted_twice() const {
    Symptom symptom{.id = name_of(split_) + "_counted_twice",
                    .blame = {sampler_or_loader(context_, split_)}};
    const auto problem = sampler_problem(context_, split_);
    if (problem && problem->variant == "pads") {
      symptom.variant = "pads";
      symptom.evidence.push_back(problem->seen);
    }
    return symptom;
  }

  // By a sampler that deals too little, or although all of it was dealt out.
  Symptom left_out() const {
    Symptom symptom{.id = name_of(split_) + "_left_out",
                    .blame = {sampler_or_loader(context_, split_)}};
    if (fetched() >= size_ || right_sampler(context_, split_)) {
      symptom.variant = fetched() >= size_            ? "loop"
                        : dealt_by_anothers_sampler() ? "another"
                                                      : "loader";
      symptom.blame = {"evaluation_loop." + name_of(split_)};
    } else if (const auto problem = sampler_problem(context_, split_)) {
      symptom.variant = "sampler";
      symptom.evidence.push_back(problem->seen);
    }
    return symptom;
  }
};

}  // namespace

void evaluation_shares(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::samplers)) return;
  // Ranks that do not train alike do not evaluate alike either; that is told by the training.
  const auto trained = [](const RankSeen& rank) { return rank.trainings().size(); };
  const auto& ranks = context.run().ranks;
  if (context.ended_well() &&
      std::ranges::adjacent_find(ranks, std::ranges::not_equal_to(), trained) != ranks.end()) {
    return;
  }
  for (const auto split : {Split::validation, Split::test}) {
    EvaluationShares shares(context, split, symptoms);
    bool wrong = shares.out_of_range() || shares.by_some_ranks();
    for (const auto& passes : whole_evaluations(context, split)) {
      wrong = wrong || shares.judge(passes);
    }
  }
}

}  // namespace checker::rules
