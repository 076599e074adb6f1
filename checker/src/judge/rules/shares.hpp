#pragma once
/// What rules about shares have in common: one split, and the samples that the ranks took of it.
#include <map>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

/// "rank 0 took 12 samples: 3, 7, 1 ..." for each rank.
std::vector<std::string> ids_by_rank(const std::vector<const Pass*>& passes);

/// How often each sample was taken, over all ranks.
std::map<uint64_t, size_t> counts_of(const std::vector<const Pass*>& passes);

/// The TODO of a split that is not dealt out as it should be: is it a wrong sampler or none, or a
/// right one that the loader does not use?
int sampler_or_loader(const Scene& scene, Split split);

class Shares {
 public:
  Shares(const Scene& scene, Split split, Findings& findings)
      : scene_(scene), split_(split), findings_(findings), size_(scene.size_of(split)) {}

  /// True if every rank goes through the whole split, or all but so many samples.
  bool copied(const std::vector<const Pass*>& passes, uint64_t slack) const;

  /// Adds a finding; the evidence begins with the split's size.
  void add(int todo, const std::string& id, const std::string& what, const std::string& why,
           std::vector<std::string> evidence, FindingKind kind = FindingKind::mistake);

  /// Every rank goes through the whole split, as it does before the samplers are made and used.
  void add_not_shared(const std::string& what, const std::string& why,
                      std::vector<std::string> evidence);

  /// A sample that is not there; a rank that asks for one dies of it, so half passes count as well.
  bool out_of_range();

 protected:
  const Scene& scene_;
  Split split_;
  Findings& findings_;
  uint64_t size_;
};

}  // namespace checker::rules
