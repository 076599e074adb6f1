// All ranks evaluate with the same buffers.
#include <algorithm>

#include "evidence/collective_kinds.hpp"
#include "judge/phases.hpp"
#include "judge/rules/deviation.hpp"
#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void buffers(const RunContext& context, Symptoms& symptoms);

namespace {

using Tensors = std::vector<TensorSeen>;

// Counts of batches differ from rank to rank where ranks took unequally many, and harm nobody.
bool is_count(const TensorSeen& tensor) { return tensor.name.ends_with("num_batches_tracked"); }

// The place in the log of the last optimizer step before an event: buffers were recorded there,
// after the step's forward pass.
size_t last_step_before(const RankSeen& rank, size_t event) {
  size_t place = 0;
  for (const auto& step : rank.steps) {
    if (step.event <= event) place = step.event;
  }
  return place;
}

// In the unchanged step ranks only add up losses between the training steps: they send no tensor to
// others.
bool sends_after_a_step(const Run& run) {
  const auto sends = [](const RankSeen& rank, const CollectiveSeen& collective) {
    const auto kind = static_cast<CollectiveKind>(collective.call.op_type);
    const auto phase = phase_at(rank, collective.event);
    return kind != CollectiveKind::all_reduce && kind != CollectiveKind::barrier &&
           phase != Phase::joining && phase != Phase::preparing && phase != Phase::training;
  };
  return std::ranges::any_of(run.ranks, [&](const RankSeen& rank) {
    return std::ranges::any_of(rank.collectives,
                               [&](const auto& seen) { return sends(rank, seen); });
  });
}

class Buffers {
 public:
  Buffers(const RunContext& context, Symptoms& symptoms) : context_(context), symptoms_(symptoms) {}

  void judge() {
    const auto validation = whole_evaluations(context_, Split::validation);
    const auto test = whole_evaluations(context_, Split::test);
    size_t number = 0;
    for (const auto& ranks : validation) look_at(ranks, "validation", ++number);
    number = 0;
    for (const auto& ranks : test) look_at(ranks, "test", ++number);
    report(validation.size() + test.size());
  }

 private:
  void look_at(const std::vector<const Pass*>& passes, const std::string& split, size_t number) {
    std::vector<Tensors> all;
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      if (passes[rank]->batches.empty()) return;  // it evaluates nothing, so with no buffers
      all.push_back(context_.run().ranks[rank].buffers_at(passes[rank]->batches.front().event));
    }
    for (size_t i = 0; i < all.front().size(); ++i) {
      if (is_count(all.front()[i])) continue;
      if (differs(all, i, split, number)) return;
      if (is_sum(all.front()[i], i, passes)) return;
    }
  }

  bool differs(const std::vector<Tensors>& all, size_t i, const std::string& split, size_t number) {
    std::vector<size_t> ranks;
    double most = 0;
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const double apart =
          i < all[rank].size() ? deviation(all[rank][i].values, all[0][i].values) : kUnknown;
      if (apart <= context_.tolerance()) continue;
      ranks.push_back(rank);
      most = std::max(most, apart);
    }
    if (ranks.empty()) return false;
    ++different_;
    deviation_ = std::max(deviation_, most);
    evidence_.push_back({"apart",
                         {{"name", all[0][i].name},
                          {"ranks", ranks_value(ranks)},
                          {"split", split},
                          {"number", number}}});
    return true;
  }

  // Of what the ranks had after their last training step.
  bool is_sum(const TensorSeen& tensor, size_t i, const std::vector<const Pass*>& passes) {
    if (context_.world() == 1) return false;
    TensorSeen sum = tensor;
    std::ranges::fill(sum.values, 0.0);
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      const auto& seen = context_.run().ranks[rank];
      const auto event = last_step_before(seen, passes[rank]->batches.front().event);
      const auto own = seen.buffers_at(event);
      if (i >= own.size() || own[i].values.size() != sum.values.size()) return false;
      for (size_t k = 0; k < sum.values.size(); ++k) sum.values[k] += own[i].values[k];
    }
    const bool all_zero = std::ranges::all_of(sum.values, [](double value) { return value == 0; });
    if (all_zero || deviation(tensor.values, sum.values) > context_.gradient_tolerance())
      return false;
    summed_ = tensor.name;
    return true;
  }

  void report(size_t evaluations) {
    if (!evidence_.empty()) {
      constexpr size_t kLines = 3;
      if (evidence_.size() > kLines) evidence_.resize(kLines);
      const bool everywhere = different_ == evaluations;
      const bool as_given = everywhere && !sends_after_a_step(context_.run());
      symptoms_.push_back({.id = "buffers_differ",
                           .values = context_.values(),
                           .evidence = evidence_,
                           .variant = everywhere ? "" : "some",
                           .kind = as_given ? FindingKind::not_started : FindingKind::mistake,
                           .deviation = deviation_});
    } else if (!summed_.empty()) {
      symptoms_.push_back({.id = "buffers_summed",
                           .values = context_.values(),
                           .evidence = {{"times", {{"name", summed_}}}}});
    }
  }

  const RunContext& context_;
  Symptoms& symptoms_;
  size_t different_ = 0;
  double deviation_ = 0;
  std::string summed_;
  std::vector<EvidenceLine> evidence_;
};

}  // namespace

void buffers(const RunContext& context, Symptoms& symptoms) {
  if (context.expects("BUFFERS") && context.world() > 1) Buffers(context, symptoms).judge();
}

}  // namespace checker::rules
