// What a rank did with its batches, pass by pass.
#include <algorithm>

#include "evidence/run.hpp"

namespace checker {

std::vector<uint64_t> Pass::ids() const {
  std::vector<uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.ids.begin(), batch.ids.end());
  return all;
}

bool Pass::trains() const { return std::ranges::any_of(batches, &BatchSeen::with_gradients); }

bool Pass::evaluates() const {
  return !trains() && std::ranges::any_of(batches, [](const BatchSeen& batch) {
    return batch.loss_count.has_value();
  });
}

std::vector<const Pass*> RankSeen::passes_over(Split split) const {
  std::vector<const Pass*> found;
  for (const auto& pass : passes) {
    if (pass.split == split) found.push_back(&pass);
  }
  return found;
}

namespace {

bool was_used(const BatchSeen& batch) { return batch.taken || batch.loss_count; }

// In the order of use; what was only fetched comes last, and a pass of such batches is none,
// unless the program died of it.
void order_by_use(std::vector<Pass>& passes) {
  for (auto& pass : passes) {
    std::ranges::stable_sort(pass.batches, {}, [](const BatchSeen& batch) {
      return batch.taken.value_or(was_used(batch) ? batch.event : SIZE_MAX);
    });
  }
  const auto unused = [&](const Pass& pass) {
    return &pass != &passes.back() && std::ranges::none_of(pass.batches, was_used);
  };
  std::vector<Pass> used;
  for (auto& pass : passes) {
    if (!unused(pass)) used.push_back(std::move(pass));
  }
  passes = std::move(used);
}

// Where a split is trained on and then evaluated, or the other way round, that is two passes.
void split_by_purpose(std::vector<Pass>& passes) {
  std::vector<Pass> all;
  for (auto& pass : passes) {
    std::optional<bool> training;
    const auto begin_pass = [&] {
      const auto before = std::ranges::count(all, pass.split, &Pass::split);
      all.push_back({.split = pass.split, .epoch = static_cast<size_t>(before), .batches = {}});
    };
    begin_pass();
    for (auto& batch : pass.batches) {
      if (batch.loss_count) {
        if (training.value_or(batch.with_gradients) != batch.with_gradients) begin_pass();
        training = batch.with_gradients;
      }
      all.back().batches.push_back(std::move(batch));
    }
  }
  passes = std::move(all);
}

}  // namespace

void put_in_order(std::vector<Pass>& passes) {
  order_by_use(passes);
  split_by_purpose(passes);
}

}  // namespace checker
