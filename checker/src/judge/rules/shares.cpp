#include "judge/rules/shares.hpp"

#include <algorithm>

namespace checker::rules {

std::vector<std::string> ids_by_rank(const std::vector<const Pass*>& passes) {
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < passes.size(); ++rank) {
    const auto ids = passes[rank]->ids();
    lines.push_back("rank " + std::to_string(rank) + " took " + std::to_string(ids.size()) +
                    " samples: " + first_few(ids));
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

int sampler_or_loader(const Scene& scene, Split split) {
  const auto loader = loader_of(split);
  return right_sampler(scene, split) ? scene.blame({loader, feature::samplers})
                                     : scene.blame({feature::samplers, loader});
}

bool Shares::copied(const std::vector<const Pass*>& passes, uint64_t slack) const {
  return scene_.world() > 1 && std::ranges::all_of(passes, [&](const Pass* pass) {
           return pass->ids().size() + slack >= size_;
         });
}

void Shares::add(int todo, const std::string& id, const std::string& what, const std::string& why,
                 std::vector<std::string> evidence, FindingKind kind) {
  evidence.insert(evidence.begin(), "the " + name_of(split_) + " split has " +
                                        std::to_string(size_) + " samples, " + scene_.where());
  findings_.push_back({todo, id, what, why, std::move(evidence), "", kind});
}

void Shares::add_not_shared(const std::string& what, const std::string& why,
                            std::vector<std::string> evidence) {
  const auto& ranks = scene_.run().ranks;
  const auto id = name_of(split_) + "_not_shared";
  // Somebody makes a sampler for this split, and it is not the right one. That comes first: the
  // loader may still be left to do.
  if (const auto problem = sampler_problem(scene_, split_)) {
    add(scene_.blame({feature::samplers, loader_of(split_)}), name_of(split_) + "_sampler_wrong",
        "The " + name_of(split_) + " sampler " + problem->what, problem->why, {problem->seen});
    add(scene_.blame({loader_of(split_)}), id, what, why, std::move(evidence),
        FindingKind::not_started);
    return;
  }
  const bool right = right_sampler(scene_, split_);
  const bool no_samplers =
      std::ranges::all_of(ranks, [](const RankSeen& rank) { return rank.samplers.empty(); });
  add(sampler_or_loader(scene_, split_), id, what, why, std::move(evidence),
      right || no_samplers ? FindingKind::not_started : FindingKind::mistake);
}

bool Shares::out_of_range() {
  for (size_t rank = 0; rank < scene_.world(); ++rank) {
    for (const auto* pass : scene_.run().ranks[rank].passes_over(split_)) {
      const auto ids = pass->ids();
      const auto beyond = std::ranges::find_if(ids, [&](uint64_t id) { return id >= size_; });
      if (beyond == ids.end()) continue;
      add(sampler_or_loader(scene_, split_), "sampler_of_another_split",
          "The " + name_of(split_) + " loader asks for samples that its split does not have.",
          "Its sampler was made for another split. Each split has a sampler of its own, made "
          "with "
          "that split's size, and each loader gets its own split's sampler.",
          {"rank " + std::to_string(rank) + " asked for sample " + std::to_string(*beyond)});
      return true;
    }
  }
  return false;
}

}  // namespace checker::rules
