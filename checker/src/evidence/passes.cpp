// What a rank did with its batches, pass by pass.
#include <algorithm>
#include <set>

#include "evidence/run.hpp"

namespace checker {

std::vector<uint64_t> Pass::ids() const {
  std::vector<uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.ids.begin(), batch.ids.end());
  return all;
}

std::vector<const Pass*> RankSeen::trainings(Split split) const {
  std::vector<const Pass*> found;
  for (const auto& pass : passes) {
    if (pass.training && pass.split == split) found.push_back(&pass);
  }
  return found;
}

std::vector<const Pass*> RankSeen::evaluations(Split split) const {
  std::vector<const Pass*> found;
  for (const auto& pass : passes) {
    if (!pass.training && pass.split == split) found.push_back(&pass);
  }
  return found;
}

namespace {

// Nothing says where a pass ends: not that there was an evaluation or a report, which may be
// half-way, nor that a sample comes again, which a wrong sampler may deal twice. What tells is both
// together with how many samples a rank's share has.
class PassBuilder {
 public:
  PassBuilder(const std::vector<uint64_t>& split_sizes, size_t world)
      : split_sizes_(split_sizes), world_(world) {}

  // ahead: samples of this batch and those that follow it up to the next evaluation.
  void take(BatchSeen&& batch, uint64_t ahead) {
    auto& open = batch.trains() ? training_ : evaluation_;
    if (batch.trains()) evaluation_.reset();
    const bool looked_at = batch.trains() && (evaluated_ || batch.after_report);
    if (!open || is_anew(passes_[*open], batch, looked_at, ahead)) {
      open = passes_.size();
      passes_.push_back({.split = batch.split,
                         .training = batch.trains(),
                         .epoch = batch.trains() ? trainings_++ : trainings_,
                         .batches = {}});
      seen_.clear();
      if (batch.trains()) trained_.clear();
    }
    auto& seen = batch.trains() ? trained_ : seen_;
    seen.insert(batch.ids.begin(), batch.ids.end());
    evaluated_ = !batch.trains();
    passes_[*open].batches.push_back(std::move(batch));
  }

  std::vector<Pass> passes() && { return std::move(passes_); }

 private:
  uint64_t size_of(Split split) const {
    const auto number = static_cast<size_t>(split);
    return number < split_sizes_.size() ? split_sizes_[number] : 0;
  }

  // after_evaluation: one came since the pass's last batch, or a report.
  bool is_anew(const Pass& pass, const BatchSeen& batch, bool after_evaluation,
               uint64_t ahead) const {
    if (batch.split != pass.split) return true;
    if (batch.ids.empty()) return after_evaluation;
    const auto& seen = batch.trains() ? trained_ : seen_;
    const auto known = [&](uint64_t id) { return seen.contains(id); };
    const auto taken = pass.ids();
    const uint64_t size = size_of(batch.split);
    const uint64_t most = (size + world_ - 1) / world_;
    if (std::ranges::all_of(batch.ids, known)) {
      return after_evaluation || batch.ids.front() == taken.front() || taken.size() >= most;
    }
    if (!after_evaluation) return false;
    const uint64_t share = taken.size() > most ? size : size / world_;
    return std::ranges::any_of(batch.ids, known) || taken.size() + ahead > share;
  }

  const std::vector<uint64_t>& split_sizes_;
  size_t world_;
  std::vector<Pass> passes_;
  std::optional<size_t> training_, evaluation_;  // the passes that go on
  std::set<uint64_t> trained_, seen_;            // samples of these
  size_t trainings_ = 0;
  bool evaluated_ = false;  // since the last batch of training
};

// Samples of the training batches from this one on, up to an evaluation, another split, or a sample
// that comes again.
uint64_t trained_from(const std::vector<BatchSeen>& batches, size_t first) {
  std::set<uint64_t> seen;
  for (size_t i = first; i < batches.size(); ++i) {
    if (!batches[i].trains() || batches[i].split != batches[first].split) break;
    for (const uint64_t id : batches[i].ids) {
      if (!seen.insert(id).second) return seen.size();
    }
  }
  return seen.size();
}

}  // namespace

std::vector<Pass> passes_of(std::vector<BatchSeen> batches,
                            const std::vector<uint64_t>& split_sizes, size_t world) {
  PassBuilder builder(split_sizes, std::max<size_t>(world, 1));
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto ahead = trained_from(batches, i);
    builder.take(std::move(batches[i]), ahead);
  }
  return std::move(builder).passes();
}

std::vector<TensorSeen> RankSeen::buffers_at(size_t event) const {
  std::vector<TensorSeen> latest;
  std::ranges::copy_if(model, std::back_inserter(latest), &TensorSeen::buffer);
  for (const auto& seen : buffers) {
    if (seen.event <= event) latest = seen.tensors;
  }
  return latest;
}

}  // namespace checker
