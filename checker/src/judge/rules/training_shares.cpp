#include <algorithm>

#include "judge/rules/shares.hpp"

namespace checker::rules {

namespace {

std::vector<uint64_t> shared_samples(const std::map<uint64_t, size_t>& counts) {
  std::vector<uint64_t> shared;
  for (const auto& [id, count] : counts) {
    if (count > 1) shared.push_back(id);
  }
  return shared;
}

class TrainingShares : public Shares {
 public:
  using Shares::Shares;

  // Where every rank ended, all train equally often.
  bool by_some_ranks() {
    if (!context_.ended_well()) return false;
    size_t most = 0;
    for (const auto& rank : context_.run().ranks) most = std::max(most, rank.trainings().size());
    std::vector<size_t> without;
    for (size_t rank = 0; rank < context_.world(); ++rank) {
      if (context_.run().ranks[rank].trainings().size() < most) without.push_back(rank);
    }
    if (without.empty()) return false;
    add({.id = "training_by_some_ranks",
         .values = {{"ranks", ranks_value(without)}},
         .evidence = {{"trains_less", {}}}});
    return true;
  }

  // A step may take several batches, or a batch in parts.
  bool other_batches(const std::vector<const Pass*>& passes) {
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      std::map<size_t, size_t> samples;
      for (const auto& batch : passes[rank]->batches) {
        if (batch.step) samples[*batch.step] += batch.ids.size();
      }
      for (const auto& [step, count] : samples) {
        if (count % context_.plan.batch_size == 0) continue;
        add({.id = "batch_size_changed",
             .evidence =
                 {{"took_in_a_step",
                   {{"rank", rank}, {"count", count}, {"asked", context_.plan.batch_size}}}},
             .blame = {"loop"}});
        return true;
      }
    }
    return false;
  }

  bool judge(size_t epoch, const std::vector<const Pass*>& passes) {
    const auto evidence = ids_by_rank(passes);
    if (copied(passes, context_.plan.batch_size) || cut_beyond_a_share(passes)) {
      add_not_shared(evidence);
      return true;
    }
    const auto counts = counts_of(passes);
    uint64_t taken = 0;
    for (const auto& [id, count] : counts) taken += count;
    const uint64_t twice = taken - counts.size();
    if (twice > context_.world() - 1) {  // padding repeats less than one sample per rank
      overlap(epoch, passes, counts, evidence);
      return true;
    }
    return twice_after_all(epoch, counts) || uneven(passes, evidence) || other_batches(passes) ||
           without_steps(passes) || (!ends_at_the_limit(passes) && left_out(counts, evidence)) ||
           unshuffled(epoch, passes, evidence) || seed_of_nobody(epoch);
  }

 private:
  // An epoch that --max-steps ended, and in which each rank has taken more than its share can hold.
  bool cut_beyond_a_share(const std::vector<const Pass*>& passes) const {
    const uint64_t world = context_.world();
    return world > 1 && ends_at_the_limit(passes) &&
           std::ranges::all_of(passes, [&](const Pass* pass) {
             return pass->ids().size() > (size_ + world - 1) / world;
           });
  }

  // Whether two ranks share all their samples exactly where they have the same local rank.
  bool shared_by_local_rank(const std::vector<const Pass*>& passes) const {
    bool any = false;
    for (size_t a = 0; a < passes.size(); ++a) {
      for (size_t b = a + 1; b < passes.size(); ++b) {
        const auto& ranks = context_.run().ranks;
        const bool alike = ranks[a].place.local_rank == ranks[b].place.local_rank;
        if (alike != (passes[a]->ids() == passes[b]->ids())) return false;
        any = any || alike;
      }
    }
    return any;
  }

  void overlap(size_t epoch, const std::vector<const Pass*>& passes,
               const std::map<uint64_t, size_t>& counts, std::vector<EvidenceLine> evidence) {
    evidence.push_back(
        {"twice", {{"epoch", epoch + 1}, {"samples", first_few(shared_samples(counts))}}});
    const bool later = epoch > 0;
    const bool by_epoch = !same_epochs() || (later && context_.expects(feature::set_epoch));
    const char* blame = by_epoch                          ? "shares_overlap.later"
                        : right_sampler(context_, split_) ? "shares_overlap.right_sampler"
                                                          : "shares_overlap";
    const char* variant = shared_by_local_rank(passes) ? "by_node" : later ? "later" : "";
    add({.id = "shares_overlap", .evidence = evidence, .variant = variant, .blame = {blame}});
  }

  // Few samples, those that fill up the last round. Where it was dropped as half a batch, the
  // sampler alone shows it.
  bool twice_after_all(size_t epoch, const std::map<uint64_t, size_t>& counts) {
    const auto padding = padding_sampler(context_, split_);
    const auto shared = shared_samples(counts);
    if (!padding && shared.empty()) return false;
    std::vector<EvidenceLine> evidence;
    if (!shared.empty()) {
      evidence.push_back({"twice", {{"epoch", epoch + 1}, {"samples", first_few(shared)}}});
    }
    if (padding) {
      evidence.push_back({"pads", {{"rank", padding->rank}, {"samples", padding->dataset_size}}});
    }
    Symptom symptom{.id = "training_counted_twice", .variant = padding ? "pads" : ""};
    if (auto another = padding ? std::nullopt : another_sampler()) {
      evidence.push_back(std::move(*another));
      symptom.blame = {"loader.training"};
    }
    symptom.evidence = std::move(evidence);
    add(std::move(symptom));
    return true;
  }

  // One that pads, beside the right one.
  std::optional<EvidenceLine> another_sampler() const {
    if (!right_sampler(context_, split_)) return std::nullopt;
    const instrumentation::SamplerRecord* padding = nullptr;
    size_t made = 0;
    for (const auto& sampler : context_.run().ranks.front().samplers) {
      if (sampler.dataset_size != size_ || sampler.num_replicas != context_.world()) continue;
      ++made;
      if (sampler.pad == 1 && sampler.drop_last == 0) padding = &sampler;
    }
    if (!padding || made < 2) return std::nullopt;
    return EvidenceLine{
        "another_sampler",
        {{"rank", size_t{0}}, {"made", made}, {"samples", size_}, {"seed", padding->seed}}};
  }

  // 0 is what a sampler has that nobody told a seed; the epochs that it is set may bring it in.
  bool seed_of_nobody(size_t epoch) {
    const auto chosen = context_.started_with("--seed");
    if (epoch > 0 || chosen.empty() || chosen == "0") return false;
    for (const auto& rank : context_.run().ranks) {
      bool any = false;
      for (const auto& sampler : rank.samplers) {
        if (sampler.dataset_size != size_ || sampler.shuffle == 0) continue;
        if (sampler.seed != 0) return false;
        any = true;
      }
      const bool by_epoch = std::ranges::any_of(
          rank.epochs_set, [&](const SetEpoch& set) { return set.epoch > context_.plan.epochs; });
      if (!any || by_epoch) return false;
    }
    add({.id = "training_seed_not_the_options",
         .evidence = {{"seed",
                       {{"rank", size_t{0}},
                        {"samples", size_},
                        {"seed", size_t{0}},
                        {"chosen", chosen}}}}});
    return true;
  }

  // Whether all ranks told their samplers the same epochs.
  bool same_epochs() const {
    const auto epochs_of = [](const RankSeen& rank) {
      std::vector<uint64_t> epochs;
      for (const auto& set : rank.epochs_set) epochs.push_back(set.epoch);
      return epochs;
    };
    const auto& ranks = context_.run().ranks;
    return std::ranges::all_of(
        ranks, [&](const RankSeen& rank) { return epochs_of(rank) == epochs_of(ranks.front()); });
  }

  bool uneven(const std::vector<const Pass*>& passes, const std::vector<EvidenceLine>& evidence) {
    for (const auto* pass : passes) {
      if (pass->batches.size() == passes[0]->batches.size()) continue;
      const bool by_sampler = deals_unevenly(context_, split_);
      const auto blame = by_sampler ? "uneven_steps" : loop_or("uneven_steps");
      add({.id = "uneven_steps", .evidence = evidence, .blame = {blame}});
      return true;
    }
    return false;
  }

  bool without_steps(const std::vector<const Pass*>& passes) {
    for (size_t rank = 0; rank < passes.size(); ++rank) {
      const auto& batches = passes[rank]->batches;
      const auto idle = batches_without_a_step(context_.run().ranks[rank], *passes[rank]);
      if (idle == 0) continue;
      add({.id = "batches_without_a_step",
           .evidence = {{"idle", {{"rank", rank}, {"idle", idle}, {"count", batches.size()}}}},
           .blame = {"loop"}});
      return true;
    }
    return false;
  }

  // Where the share is right, the loop makes something else of it.
  std::string loop_or(const char* otherwise) const {
    return right_sampler(context_, split_) ? "loop" : otherwise;
  }

  bool ends_at_the_limit(const std::vector<const Pass*>& passes) const {
    const auto& rank = context_.run().ranks.front();
    return reached_the_limit(context_, rank) && passes.front() == rank.trainings().back();
  }

  bool left_out(const std::map<uint64_t, size_t>& counts, std::vector<EvidenceLine> evidence) {
    const uint64_t world = context_.world();
    if (counts.size() + (world - 1) + world * (context_.plan.batch_size - 1) >= size_) return false;
    evidence.push_back({"only", {{"count", counts.size()}}});
    add({.id = "training_data_left_out",
         .evidence = evidence,
         .blame = {same_epochs() ? loop_or("training_data_left_out") : "shares_overlap.later"}});
    return true;
  }

  bool unshuffled(size_t epoch, const std::vector<const Pass*>& passes,
                  const std::vector<EvidenceLine>& evidence) {
    const bool sorted = std::ranges::all_of(
        passes, [](const Pass* pass) { return std::ranges::is_sorted(pass->ids()); });
    if (epoch > 0 || !sorted) return false;
    add({.id = "training_not_shuffled",
         .evidence = evidence,
         .blame = {sampler_or_loader(context_, split_)}});
    return true;
  }
};

}  // namespace

void training_shares(const RunContext& context, Symptoms& symptoms) {
  TrainingShares shares(context, Split::train, symptoms);
  if (!context.expects(feature::samplers)) {
    for (const auto& passes : whole_trainings(context)) {
      if (shares.other_batches(passes)) return;
    }
    return;
  }
  if (shares.out_of_range()) return;
  // Up to --max-steps, a rank with a larger share needs fewer epochs.
  const bool limited = context.plan.max_steps > 0;
  if (!limited && shares.by_some_ranks()) return;
  const auto epochs = whole_trainings(context);
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    if (shares.judge(epoch, epochs[epoch])) return;
  }
  if (limited) shares.by_some_ranks();
}

}  // namespace checker::rules
