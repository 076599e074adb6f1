#include <algorithm>

#include "judge/rules/shares.hpp"

namespace checker::rules {

namespace {

class EvaluationShares : public Shares {
 public:
  using Shares::Shares;

  // Where every rank came to its end, all went through the split equally often.
  bool by_some_ranks() {
    if (!scene_.ended_well()) return false;
    std::vector<size_t> without;
    size_t most = 0;
    for (const auto& rank : scene_.run().ranks) {
      most = std::max(most, rank.passes_over(split_).size());
    }
    for (size_t rank = 0; rank < scene_.world(); ++rank) {
      if (scene_.run().ranks[rank].passes_over(split_).size() < most) without.push_back(rank);
    }
    if (without.empty()) return false;
    const auto name = name_of(split_);
    add(scene_.blame({loader_of(split_), feature::all_reduce, feature::print0, feature::samplers,
                      feature::setup}),
        name + "_by_some_ranks", "Only some ranks evaluate the " + name + " data.",
        "Every rank evaluates a share of its own, so that the work is shared and every rank comes "
        "to the same collectives.",
        {ranks_in_words(without) + " went through it less often than others"});
    return true;
  }

  bool judge(const std::vector<const Pass*>& passes) {
    const auto evidence = ids_by_rank(passes);
    const std::string name = name_of(split_);
    if (copied(passes, 0)) {
      add_not_shared("Every rank still evaluates all of the " + name + " data.",
                     "The " + name +
                         " loader must get a DistributedSampler as well, so that the ranks share "
                         "the work.",
                     evidence);
      return true;
    }
    const auto counts = counts_of(passes);
    std::vector<uint64_t> twice;
    for (const auto& [id, count] : counts) {
      if (count > 1) twice.push_back(id);
    }
    if (!twice.empty()) {
      auto lines = evidence;
      lines.push_back("counted more than once: " + first_few(twice));
      add(sampler_or_loader(scene_, split_), name + "_counted_twice",
          "Some " + name + " samples count more than once.",
          "Padding repeats samples until all ranks have equally many, which falsifies an average: "
          ".pad = false for evaluation. And each rank needs a share of its own.",
          lines);
      return true;
    }
    if (counts.size() < size_) {
      auto lines = evidence;
      lines.push_back("only " + std::to_string(counts.size()) + " different samples in all");
      add(sampler_or_loader(scene_, split_), name + "_left_out",
          "Some " + name + " samples are never evaluated.",
          "The ranks' shares together must be the whole split: no drop_last in an evaluation, the "
          "split's own size, the world's size.",
          lines);
      return true;
    }
    return false;
  }
};

}  // namespace

void evaluation_shares(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::samplers)) return;
  for (const auto split : {Split::validation, Split::test}) {
    EvaluationShares shares(scene, split, findings);
    bool wrong = shares.out_of_range() || shares.by_some_ranks();
    for (const auto& passes : whole_passes(scene, split)) {
      wrong = wrong || shares.judge(passes);
    }
  }
}

}  // namespace checker::rules
