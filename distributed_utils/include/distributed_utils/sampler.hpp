#pragma once
/// Which samples of a dataset are this rank's.
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
  bool drop_last = false;  ///< drop the tail, so that ranks have equally many and none twice
  /// Without drop_last: repeat samples from the start of the order, so that ranks have equally
  /// many. False: ranks may differ by one sample and none counts twice, which exact evaluation
  /// needs; training would hang, since ranks with a batch less leave the others waiting.
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

  /// To be called at the start of every epoch, with the same number on all ranks.
  void set_epoch(uint64_t epoch);

  /// Has the next pass, and only that one, begin after the first `samples` of the epoch's order:
  /// those that all ranks together have taken (for each step, batch size times number of ranks).
  /// What is left is dealt out as a whole epoch is, from there on: rank r takes samples + r,
  /// samples + r + num_replicas, ..., and the tail is padded or dropped as the options say.
  ///
  /// With as many ranks as before these are exactly the samples that the pass would still have
  /// dealt to this rank. With more or fewer ranks each sample that is left is dealt to one of them,
  /// because the order depends on seed and epoch alone and its first `samples` are those that were
  /// taken, however many ranks there were. (Python's DistributedSampler cannot do this; torchdata's
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
