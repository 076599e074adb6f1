#pragma once
/// DistributedSampler decides which samples of a dataset this rank gets, so that the ranks share
/// each epoch.
#include <torch/data/samplers/base.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

struct DistributedSamplerOptions {
  bool shuffle = true;  ///< a new order every epoch, the same on all ranks before it is dealt out
  uint64_t seed = 0;    ///< the same on all ranks, or ranks will share samples and miss others
  bool drop_last = false;  ///< drop the tail: all ranks get the same number, no sample twice
  /// Without drop_last: repeat samples from the start of the order, so that all ranks have the same
  /// number. False: ranks may differ by one sample, and no sample counts twice. Exact evaluation
  /// needs that. Training would hang, because ranks with fewer batches leave the others waiting.
  bool pad = true;
  Group group = {};                      ///< whose ranks share the dataset; empty: the world
  std::optional<int> num_replicas = {};  ///< instead of the group's size; then rank is needed too
  std::optional<int> rank = {};          ///< instead of the rank within the group
};

/// The semantics of Python's torch.utils.data.DistributedSampler (torch/utils/data/distributed.py):
/// order = randperm(n) from a CPU generator seeded with seed + epoch (or 0..n-1), padded or cut to
/// a multiple of the number of ranks; rank r takes r, r + num_replicas, r + 2 num_replicas, ...
///
/// torch::data::make_data_loader copies its sampler. Copies share their epoch, so set_epoch on the
/// one a program kept reaches the one a loader holds (with torch's own samplers it does not,
/// pytorch/pytorch#73141). It takes effect when the loader is next asked for begin(). The same
/// holds for skip.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// dataset_size: samples in the whole dataset. Throws Error for contradicting options, for a rank
  /// outside num_replicas, and before setup() unless num_replicas and rank are given.
  explicit DistributedSampler(size_t dataset_size, const DistributedSamplerOptions& options = {});

  /// Call it at the start of every epoch, with the same number on all ranks.
  void set_epoch(uint64_t epoch);

  /// Lets the next pass, and only that one, begin after the first `samples` of the epoch's order.
  /// These are the samples that all ranks together have taken: batch size times number of ranks for
  /// each step. The rest is dealt out like a whole epoch: rank r takes samples + r, samples + r +
  /// num_replicas, ..., and the options decide whether to pad or drop the tail.
  ///
  /// With the same number of ranks, these are exactly the remaining samples of this rank. With more
  /// or fewer ranks, each remaining sample goes to exactly one of them, because the order depends
  /// only on seed and epoch. (Python's DistributedSampler cannot do this; torchdata's
  /// StatefulDistributedSampler, torchdata/stateful_dataloader/sampler.py, skips the same samples,
  /// at the same number of ranks only.)
  void skip(size_t samples);

  /// Starts the order of the current epoch, for a dataset of another size if one is given.
  void reset(std::optional<size_t> new_size = std::nullopt) override;

  /// The next indices of this rank, at most batch_size; nullopt once there are none.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;

  /// Epoch, skipped samples and position.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

  /// Number of this rank's samples in a whole epoch.
  size_t size() const;

 private:
  /// What all copies of a sampler share.
  struct Shared {
    uint64_t epoch = 0;
    size_t skip = 0;  // by the next pass
  };

  std::vector<size_t> indices_of_rank() const;
  /// This rank's share of `samples`.
  size_t share_of(size_t samples) const;

  size_t dataset_size_;
  DistributedSamplerOptions options_;
  size_t num_replicas_;
  size_t rank_;
  uint64_t observed_number_ = 0;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  size_t first_ = 0;  // of this pass, in the epoch's order
  std::vector<size_t> indices_;
  size_t position_ = 0;
};

}  // namespace distributed_utils
