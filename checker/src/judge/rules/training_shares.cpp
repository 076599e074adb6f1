#include <algorithm>

#include "judge/rules/shares.hpp"

namespace checker::rules {

namespace {

class TrainingShares : public Shares {
 public:
  using Shares::Shares;

  bool judge(size_t epoch, const std::vector<const Pass*>& passes) {
    const auto evidence = ids_by_rank(passes);
    if (copied(passes, scene_.plan.batch_size)) {
      add_not_shared("Every rank still trains on all of the training data.",
                     "The training loader must get train_sampler; a sampler that no loader uses "
                     "changes nothing. Otherwise more ranks do the same work more often.",
                     evidence);
      return true;
    }
    const auto counts = counts_of(passes);
    uint64_t taken = 0;
    for (const auto& [id, count] : counts) taken += count;
    const uint64_t twice = taken - counts.size();
    if (twice > scene_.world() - 1) {  // padding repeats less than one sample per rank
      overlap(epoch, passes, counts, evidence);
      return true;
    }
    return uneven(passes, evidence) || other_batches(passes) || without_steps(passes) ||
           left_out(counts, evidence) || unshuffled(epoch, passes, evidence);
  }

 private:
  // Whether two ranks share all their samples exactly where they have the same local rank.
  bool shared_by_local_rank(const std::vector<const Pass*>& passes) const {
    bool any = false;
    for (size_t a = 0; a < passes.size(); ++a) {
      for (size_t b = a + 1; b < passes.size(); ++b) {
        const auto& ranks = scene_.run().ranks;
        const bool alike = ranks[a].place.local_rank == ranks[b].place.local_rank;
        if (alike != (passes[a]->ids() == passes[b]->ids())) return false;
        any = any || alike;
      }
    }
    return any;
  }

  void overlap(size_t epoch, const std::vector<const Pass*>& passes,
               const std::map<uint64_t, size_t>& counts, std::vector<std::string> evidence) {
    std::vector<uint64_t> shared;
    for (const auto& [id, count] : counts) {
      if (count > 1) shared.push_back(id);
    }
    evidence.push_back("taken more than once in epoch " + std::to_string(epoch + 1) + ": " +
                       first_few(shared));
    const bool by_node = shared_by_local_rank(passes);
    const bool later = epoch > 0;
    const int todo =
        later || !same_epochs() ? scene_.blame({feature::set_epoch, feature::samplers})
        : right_sampler(scene_, split_)
            ? scene_.blame({feature::training_loader, feature::set_epoch, feature::samplers})
            : scene_.blame({feature::samplers, feature::set_epoch, feature::training_loader});
    const std::string why =
        by_node ? "Ranks with the same local rank, on two nodes, get the same samples: the sampler "
                  "must "
                  "know the rank, not the local rank."
        : later ? "The first epoch is dealt out rightly, a later one is not: all ranks must call "
                  "set_epoch with the same number, or each shuffles in an order of its own."
                : "Ranks must deal out one common order: the same seed and the same epoch on every "
                  "rank, the world's size, and each its own rank.";
    add(todo, "shares_overlap", "Ranks train on the same samples in the same epoch.", why,
        std::move(evidence));
  }

  // Whether all ranks told their samplers the same epochs.
  bool same_epochs() const {
    const auto epochs_of = [](const RankSeen& rank) {
      std::vector<uint64_t> epochs;
      for (const auto& set : rank.epochs_set) epochs.push_back(set.epoch);
      return epochs;
    };
    const auto& ranks = scene_.run().ranks;
    return std::ranges::all_of(
        ranks, [&](const RankSeen& rank) { return epochs_of(rank) == epochs_of(ranks.front()); });
  }

  bool uneven(const std::vector<const Pass*>& passes, const std::vector<std::string>& evidence) {
    for (const auto* pass : passes) {
      if (pass->batches.size() == passes[0]->batches.size()) continue;
      const int todo = right_sampler(scene_, split_)
                           ? blame_for_loop()
                           : scene_.blame({feature::samplers, feature::training_loader,
                                           feature::ddp, feature::all_reduce});
      add(todo, "uneven_steps", "Ranks take different numbers of training steps.",
          "Each step needs all ranks: the one with a step less leaves the others waiting. "
          "drop_last "
          "in the training sampler gives all ranks equally many samples, and no rank may leave the "
          "loop on its own.",
          evidence);
      return true;
    }
    return false;
  }

  bool other_batches(const std::vector<const Pass*>& passes) {
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      const auto& batches = passes[rank]->batches;
      for (const auto& batch : batches) {
        if (batch.ids.size() == scene_.plan.batch_size) continue;
        add(blame_for_loop(), "batch_size_changed",
            "The batches of training are not of the size that was asked for.",
            "--batch-size is what each rank takes in a step, as before: the ranks together take "
            "world size times as much, and what does not fill a batch is dropped.",
            {"rank " + std::to_string(rank) + " took " + std::to_string(batch.ids.size()) +
             " samples in a step where " + std::to_string(scene_.plan.batch_size) +
             " were asked for"});
        return true;
      }
    }
    return false;
  }

  bool without_steps(const std::vector<const Pass*>& passes) {
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      const auto& batches = passes[rank]->batches;
      const auto idle = std::ranges::count_if(
          batches, [](const BatchSeen& batch) { return !batch.step.has_value(); });
      if (idle == 0) continue;
      add(blame_for_loop(), "batches_without_a_step",
          "Some batches are fetched, but no optimizer step follows.",
          "What the loader deals out is this rank's alone: nobody else trains on it.",
          {"rank " + std::to_string(rank) + ": " + std::to_string(idle) + " of " +
           std::to_string(batches.size()) + " batches"});
      return true;
    }
    return false;
  }

  // The share is right; what is made of it is not.
  int blame_for_loop() const {
    return scene_.blame({feature::training_loader, feature::ddp, feature::all_reduce,
                         feature::set_epoch, feature::print0});
  }

  bool left_out(const std::map<uint64_t, size_t>& counts, std::vector<std::string> evidence) {
    const uint64_t world = scene_.world();
    if (counts.size() + (world - 1) + world * (scene_.plan.batch_size - 1) >= size_) return false;
    evidence.push_back("only " + std::to_string(counts.size()) + " different samples in all");
    const int todo = right_sampler(scene_, split_)
                         ? blame_for_loop()
                         : scene_.blame({feature::samplers, feature::training_loader, feature::ddp,
                                         feature::all_reduce});
    add(todo, "training_data_left_out", "A part of the training data is never used in an epoch.",
        "The ranks' shares together must be the whole split, but for what does not fill a batch.",
        std::move(evidence));
    return true;
  }

  bool unshuffled(size_t epoch, const std::vector<const Pass*>& passes,
                  const std::vector<std::string>& evidence) {
    const bool sorted = std::ranges::all_of(
        passes, [](const Pass* pass) { return std::ranges::is_sorted(pass->ids()); });
    if (epoch > 0 || !sorted) return false;
    add(sampler_or_loader(scene_, split_), "training_not_shuffled",
        "The training data comes in its stored order.",
        "Stochastic gradient descent wants a random order: .shuffle = true in the training "
        "sampler.",
        evidence);
    return true;
  }
};

}  // namespace

void training_shares(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::samplers)) return;
  TrainingShares shares(scene, Split::train, findings);
  if (shares.out_of_range()) return;
  const auto epochs = whole_passes(scene, Split::train);
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    if (shares.judge(epoch, epochs[epoch])) return;
  }
}

}  // namespace checker::rules
