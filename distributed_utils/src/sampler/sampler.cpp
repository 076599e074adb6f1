#include "distributed_utils/sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"

namespace distributed_utils {

DistributedSampler::DistributedSampler(size_t dataset_size,
                                       const DistributedSamplerOptions& options)
    : dataset_size_(dataset_size), options_(options) {
  if (options.num_replicas.has_value() != options.rank.has_value()) {
    throw Error("DistributedSampler: give both num_replicas and rank, or neither.");
  }
  const bool given = options.rank.has_value();
  if (!given) group_or_world(options.group);  // throws before setup(), where every rank would be 0
  const int replicas = given ? *options.num_replicas : get_world_size(options.group);
  const int rank = given ? *options.rank : get_rank(options.group);
  if (rank < 0 || rank >= replicas) {
    throw Error(fmt::format("DistributedSampler: rank {} of {} ranks; ranks count from 0 to {}.",
                            rank, replicas, replicas - 1));
  }
  num_replicas_ = static_cast<size_t>(replicas);
  rank_ = static_cast<size_t>(rank);
  reset();
  if (Observer* const watching = observer()) {
    observed_number_ = watching->sampler_made({.dataset_size = dataset_size_,
                                               .num_replicas = num_replicas_,
                                               .rank = rank_,
                                               .seed = options_.seed,
                                               .shuffle = options_.shuffle,
                                               .drop_last = options_.drop_last,
                                               .pad = options_.pad});
  }
}

void DistributedSampler::set_epoch(uint64_t epoch) {
  if (Observer* const watching = observer()) watching->epoch_set(observed_number_, epoch);
  shared_->epoch = epoch;
}

void DistributedSampler::skip(size_t samples) { shared_->skip = samples; }

void DistributedSampler::reset(std::optional<size_t> new_size) {
  if (new_size) dataset_size_ = *new_size;
  // A padded pass may have taken a few more samples than there are.
  first_ = std::min(std::exchange(shared_->skip, 0), dataset_size_);
  indices_ = indices_of_rank();
  position_ = 0;
}

std::optional<std::vector<size_t>> DistributedSampler::next(size_t batch_size) {
  const size_t end = std::min(position_ + batch_size, indices_.size());
  if (position_ == end) return std::nullopt;
  std::vector<size_t> batch(indices_.begin() + static_cast<std::ptrdiff_t>(position_),
                            indices_.begin() + static_cast<std::ptrdiff_t>(end));
  position_ = end;
  return batch;
}

std::vector<size_t> DistributedSampler::indices_of_rank() const {
  std::vector<size_t> order(dataset_size_);
  if (options_.shuffle) {
    // Python seeds a generator of its own likewise, so that no other use of random numbers moves
    // it.
    auto generator = at::detail::createCPUGenerator(options_.seed + shared_->epoch);
    const auto permutation =
        at::randperm(static_cast<int64_t>(dataset_size_), generator, at::dtype(at::kLong));
    const int64_t* first = permutation.const_data_ptr<int64_t>();
    std::copy(first, first + dataset_size_, order.begin());
  } else {
    std::iota(order.begin(), order.end(), size_t{0});
  }
  // A padded order starts over at its own beginning.
  std::vector<size_t> mine(share_of(dataset_size_ - first_));
  for (size_t i = 0; i < mine.size(); ++i) {
    mine[i] = order[(first_ + rank_ + i * num_replicas_) % dataset_size_];
  }
  return mine;
}

size_t DistributedSampler::size() const { return share_of(dataset_size_); }

size_t DistributedSampler::share_of(size_t samples) const {
  if (options_.drop_last) return samples / num_replicas_;
  if (options_.pad) return (samples + num_replicas_ - 1) / num_replicas_;
  return rank_ >= samples ? 0 : (samples - rank_ - 1) / num_replicas_ + 1;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", torch::IValue(static_cast<int64_t>(shared_->epoch)));
  archive.write("first", torch::IValue(static_cast<int64_t>(first_)));
  archive.write("position", torch::IValue(static_cast<int64_t>(position_)));
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  torch::IValue epoch;
  torch::IValue first;
  torch::IValue position;
  archive.read("epoch", epoch);
  archive.read("first", first);
  archive.read("position", position);
  shared_->epoch = static_cast<uint64_t>(epoch.toInt());
  skip(static_cast<size_t>(first.toInt()));
  reset();
  position_ = std::min(static_cast<size_t>(position.toInt()), indices_.size());
}

}  // namespace distributed_utils
