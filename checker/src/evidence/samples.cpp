#include "evidence/samples.hpp"

#include <algorithm>

namespace checker {

namespace {

// A task has a few; more is not a split.
constexpr uint64_t kMostSplits = 64;
// A program may compute some outputs before it looks at their losses.
constexpr size_t kForwardsKept = 256;

}  // namespace

void SampleFinder::gave(const Event& event) {
  const auto head = event.head<instrumentation::SamplesRecord>();
  if (!head || head->split >= kMostSplits) return;
  if (split_sizes_.size() <= head->split) split_sizes_.resize(head->split + 1);
  split_sizes_[head->split] = head->size;
  const auto numbers = event.numbers<uint64_t>(sizeof *head);
  for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
    known_[numbers[i + 1]] = {
        .split = static_cast<Split>(head->split), .id = numbers[i], .target = numbers[i + 2]};
  }
}

void SampleFinder::forward(size_t number, const std::vector<uint64_t>& inputs) {
  auto& received = received_.emplace_back();
  received.number = number;
  for (const auto input : inputs) {
    const auto found = known_.find(input);
    received.samples.push_back(found == known_.end() ? std::nullopt : std::optional(found->second));
  }
  if (received_.size() > kForwardsKept) received_.pop_front();
}

bool SampleFinder::fits(const std::vector<std::optional<Sample>>& samples) const {
  return std::ranges::equal(samples, targets_, [](const auto& sample, uint64_t target) {
    return sample && sample->target == target;
  });
}

// The outputs of several passes, one after the other, as many as there are targets.
std::vector<std::optional<SampleFinder::Sample>> SampleFinder::of_last_forwards() const {
  std::vector<std::optional<Sample>> samples;
  for (size_t i = received_.size(); i-- > 0 && samples.size() < targets_.size();) {
    const auto& more = received_[i].samples;
    samples.insert(samples.begin(), more.begin(), more.end());
  }
  return samples;
}

// A part of a pass, or several in another order.
std::vector<std::optional<SampleFinder::Sample>> SampleFinder::by_target() const {
  std::vector<std::optional<Sample>> samples;
  for (const auto target : targets_) {
    auto& sample = samples.emplace_back();
    for (size_t i = received_.size(); i-- > 0 && !sample;) {
      const auto found = std::ranges::find_if(received_[i].samples, [&](const auto& candidate) {
        return candidate && candidate->target == target;
      });
      if (found != received_[i].samples.end()) sample = *found;
    }
  }
  return samples;
}

void SampleFinder::take(BatchSeen& batch, const std::vector<std::optional<Sample>>& samples) {
  for (const auto& sample : samples) {
    if (!sample || sample->split != samples.front()->split) {
      batch.ids.clear();
      return;
    }
    batch.split = sample->split;
    batch.ids.push_back(sample->id);
  }
}

void SampleFinder::find(BatchSeen& batch) const {
  for (size_t i = received_.size(); i-- > 0;) {
    if (!fits(received_[i].samples)) continue;
    batch.forward = received_[i].number;
    return take(batch, received_[i].samples);
  }
  if (const auto several = of_last_forwards(); fits(several)) return take(batch, several);
  if (const auto parts = by_target(); fits(parts)) return take(batch, parts);
  // Outputs of some samples and targets of others: the losses will show that.
  if (!received_.empty() && received_.back().samples.size() == targets_.size()) {
    batch.forward = received_.back().number;
    take(batch, received_.back().samples);
  }
}

}  // namespace checker
