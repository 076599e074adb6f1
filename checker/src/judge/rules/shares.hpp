#pragma once
/// What rules about shares have in common: one split, and the samples that the ranks took of it.
#include <map>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

/// What each rank took of a split, a line each.
std::vector<EvidenceLine> ids_by_rank(const std::vector<const Pass*>& passes);

/// How often each sample was taken, over all ranks.
std::map<uint64_t, size_t> counts_of(const std::vector<const Pass*>& passes);

class Shares {
 public:
  Shares(const RunContext& context, Split split, Symptoms& symptoms)
      : context_(context), split_(split), symptoms_(symptoms), size_(context.size_of(split)) {}

  /// True if every rank goes through the whole split, or all but so many samples.
  bool copied(const std::vector<const Pass*>& passes, uint64_t slack) const;

  /// Adds a symptom; the evidence begins with the split's size, and {split} is its name.
  void add(Symptom symptom);

  /// Every rank goes through the whole split, as it does before the samplers are made and used.
  void add_not_shared(const std::vector<EvidenceLine>& evidence);

  /// A sample that is not there; a rank that asks for one dies of it, so half passes count as well.
  bool out_of_range();

 protected:
  const RunContext& context_;
  Split split_;
  Symptoms& symptoms_;
  uint64_t size_;

 private:
  bool asks_for_the_test(size_t rank, const FetchSeen& last) const;
};

}  // namespace checker::rules
