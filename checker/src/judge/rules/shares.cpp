#include <algorithm>
#include <map>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

std::string_view loader_of(Split split) {
  constexpr std::string_view loaders[] = {feature::training_loader, feature::validation_loader,
                                          feature::test_loader};
  return loaders[static_cast<size_t>(split)];
}

std::vector<std::string> ids_by_rank(const std::vector<const Pass*>& passes) {
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < passes.size(); ++rank) {
    const auto ids = passes[rank]->ids();
    lines.push_back("rank " + std::to_string(rank) + " took " + std::to_string(ids.size()) +
                    " samples: " + first_few(ids));
  }
  return lines;
}

// How often each sample was taken, over all ranks.
std::map<uint64_t, size_t> counts_of(const std::vector<const Pass*>& passes) {
  std::map<uint64_t, size_t> counts;
  for (const auto* pass : passes) {
    for (const auto id : pass->ids()) ++counts[id];
  }
  return counts;
}

// A wrong sampler, or a right one that the loader does not use?
int sampler_or_loader(const Scene& scene, Split split) {
  const auto loader = loader_of(split);
  const bool sampler_wrong = any_sampler(scene) && !right_sampler(scene, split);
  return sampler_wrong ? scene.blame({feature::samplers, loader})
                       : scene.blame({loader, feature::samplers});
}

class Shares {
 public:
  Shares(const Scene& scene, Split split, Findings& findings)
      : scene_(scene), split_(split), findings_(findings), size_(scene.size_of(split)) {}

  // True if every rank goes through the whole split.
  bool copied(const std::vector<const Pass*>& passes, uint64_t slack) const {
    return scene_.world() > 1 && std::ranges::all_of(passes, [&](const Pass* pass) {
             return pass->ids().size() + slack >= size_;
           });
  }

  void add(int todo, const std::string& id, const std::string& what, const std::string& why,
           std::vector<std::string> evidence) {
    evidence.insert(evidence.begin(), "the " + name_of(split_) + " split has " +
                                          std::to_string(size_) + " samples, " + scene_.where());
    findings_.push_back({todo, id, what, why, std::move(evidence), ""});
  }

  // A sample that is not there; a rank that asks for one dies of it, so half passes count as well.
  bool out_of_range() {
    for (size_t rank = 0; rank < scene_.world(); ++rank) {
      for (const auto* pass : scene_.run().ranks[rank].passes_over(split_)) {
        const auto ids = pass->ids();
        const auto beyond = std::ranges::find_if(ids, [&](uint64_t id) { return id >= size_; });
        if (beyond == ids.end()) continue;
        const bool right = right_sampler(scene_, split_);
        add(right ? scene_.blame({loader_of(split_), feature::samplers})
                  : scene_.blame({feature::samplers, loader_of(split_)}),
            "sampler_of_another_split",
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

 protected:
  const Scene& scene_;
  Split split_;
  Findings& findings_;
  uint64_t size_;
};

class TrainingShares : public Shares {
 public:
  using Shares::Shares;

  bool judge(size_t epoch, const std::vector<const Pass*>& passes) {
    const uint64_t batch = batch_size(scene_);
    const auto evidence = ids_by_rank(passes);
    if (copied(passes, batch)) {
      add(sampler_or_loader(scene_, split_), "training_not_shared",
          "Every rank still trains on all of the training data.",
          "The training loader must get train_sampler; a sampler that no loader uses changes "
          "nothing. Otherwise more ranks do the same work more often.",
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
    return uneven(passes, evidence) || left_out(counts, batch, evidence) ||
           unshuffled(epoch, passes, evidence);
  }

 private:
  void overlap(size_t epoch, const std::vector<const Pass*>& passes,
               const std::map<uint64_t, size_t>& counts, std::vector<std::string> evidence) {
    std::vector<uint64_t> shared;
    for (const auto& [id, count] : counts) {
      if (count > 1) shared.push_back(id);
    }
    evidence.push_back("taken more than once in epoch " + std::to_string(epoch + 1) + ": " +
                       first_few(shared));
    const bool by_node = scene_.world() == 3 && passes[0]->ids() == passes[2]->ids() &&
                         passes[0]->ids() != passes[1]->ids();
    const bool later = epoch > 0;
    const int todo =
        later ? scene_.blame({feature::set_epoch, feature::samplers})
              : scene_.blame({feature::samplers, feature::set_epoch, feature::training_loader});
    const std::string why =
        by_node
            ? "Ranks 0 and 2 have the same local rank, on two nodes, and get the same samples: the "
              "sampler must know the rank, not the local rank."
        : later ? "The first epoch is dealt out rightly, a later one is not: all ranks must call "
                  "set_epoch with the same number, or each shuffles in an order of its own."
                : "Ranks must deal out one common order: the same seed and the same epoch on every "
                  "rank, the world's size, and each its own rank.";
    add(todo, "shares_overlap", "Ranks train on the same samples in the same epoch.", why,
        std::move(evidence));
  }

  bool uneven(const std::vector<const Pass*>& passes, const std::vector<std::string>& evidence) {
    for (const auto* pass : passes) {
      if (pass->batches.size() == passes[0]->batches.size()) continue;
      const int todo =
          right_sampler(scene_, split_)
              ? scene_.blame({feature::training_loader, feature::ddp, feature::all_reduce,
                              feature::set_epoch, feature::print0})
              : scene_.blame({feature::samplers, feature::training_loader, feature::ddp,
                              feature::all_reduce});
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

  bool left_out(const std::map<uint64_t, size_t>& counts, uint64_t batch,
                std::vector<std::string> evidence) {
    const uint64_t world = scene_.world();
    if (counts.size() + (world - 1) + world * (batch - 1) >= size_) return false;
    evidence.push_back("only " + std::to_string(counts.size()) + " different samples in all");
    const int todo = right_sampler(scene_, split_)
                         ? scene_.blame({feature::training_loader, feature::ddp,
                                         feature::all_reduce, feature::set_epoch, feature::print0})
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

class EvaluationShares : public Shares {
 public:
  using Shares::Shares;

  bool judge(const std::vector<const Pass*>& passes) {
    const auto evidence = ids_by_rank(passes);
    const std::string name = name_of(split_);
    if (copied(passes, 0)) {
      add(sampler_or_loader(scene_, split_), name + "_not_shared",
          "Every rank still evaluates all of the " + name + " data.",
          "The " + name +
              " loader must get a DistributedSampler as well, so that the ranks share the "
              "work.",
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

void shares(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::samplers)) return;
  TrainingShares training(scene, Split::train, findings);
  bool found = training.out_of_range();
  const auto epochs = whole_passes(scene, Split::train);
  for (size_t epoch = 0; epoch < epochs.size() && !found; ++epoch) {
    found = training.judge(epoch, epochs[epoch]);
  }
  for (const auto split : {Split::validation, Split::test}) {
    EvaluationShares evaluation(scene, split, findings);
    bool wrong = evaluation.out_of_range();
    for (const auto& passes : whole_passes(scene, split)) {
      wrong = wrong || evaluation.judge(passes);
    }
  }
}

}  // namespace checker::rules
