#include "fsdp/gather.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <numeric>
#include <utility>

#include "group/streams.hpp"

namespace distributed_utils::detail {

bool Gather::is_small(const at::Tensor& whole) { return whole.nbytes() < kAloneBytes; }

Gather::Gather(const std::vector<std::pair<std::string, at::Tensor>>& parameters,
               const Sharing& sharing)
    : sharing_(sharing) {
  const auto& like = parameters.at(0).second;
  stays_ = sharing.ranks() == 1 && sharing.compute_type(like.scalar_type()) == like.scalar_type();
  if (stays_) {
    for (const auto& [name, whole] : parameters) parameters_.emplace_back(name, whole);
    state_ = State::whole;
    return;
  }
  int64_t total = 0;
  for (const auto& [name, whole] : parameters) {
    if (is_small(whole)) total += chunk_numel(whole, sharing.ranks());
  }
  const auto options =
      like.options().requires_grad(false).memory_format(at::MemoryFormat::Contiguous);
  together_ = at::zeros({total}, options);
  int64_t begin = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, whole] = parameters[i];
    const int64_t size = chunk_numel(whole, sharing.ranks());
    const bool small = is_small(whole);
    const auto chunk = small ? together_.narrow(0, begin, size) : at::zeros({size}, options);
    if (small) begin += size;
    (small ? small_ : large_).push_back(i);
    parameters_.emplace_back(name, whole, sharing, chunk);
  }
}

/// What travels from here, in the type in which it travels.
std::vector<at::Tensor> Gather::sources() const {
  std::vector<at::Tensor> shards;
  if (!small_.empty()) shards.push_back(together_);
  for (const size_t i : large_) shards.push_back(parameters_[i].chunk());
  const auto type = sharing_.compute_type(shards[0].scalar_type());
  if (type == shards[0].scalar_type()) return shards;
  std::vector<int64_t> sizes;
  for (const auto& shard : shards) sizes.push_back(shard.numel());
  const auto all = at::empty({std::accumulate(sizes.begin(), sizes.end(), int64_t{0})},
                             shards[0].options().dtype(type));
  auto converted = all.split_with_sizes(sizes);
  at::_foreach_copy_(converted, shards);
  return converted;
}

bool Gather::start() {
  if (state_ != State::free) return false;
  state_ = State::under_way;
  const at::NoGradGuard no_grad;
  const c10::OptionalStreamGuard on(sharing_.gather_stream);
  for (auto& parameter : parameters_) parameter.allocate();
  inputs_ = sources();
  if (!small_.empty()) {
    outputs_.push_back(at::empty({sharing_.ranks() * together_.numel()}, inputs_[0].options()));
  }
  for (const size_t i : large_) outputs_.push_back(parameters_[i].landing().flatten());
  if (sharing_.ranks() == 1) {
    at::_foreach_copy_(outputs_, inputs_);
  } else {
    c10d::AllgatherOptions options;
    options.asyncOp = !sharing_.gather_stream;
    work_ = sharing_.group->allgather_into_tensor_coalesced(outputs_, inputs_, options);
  }
  if (sharing_.gather_stream) {
    land();
    there_.emplace(sharing_.gather_stream->device_type());
    there_->record(*sharing_.gather_stream);
  }
  return true;
}

/// Takes the small parameters to where they belong.
void Gather::land() {
  if (work_) work_->wait();
  work_.reset();
  if (!small_.empty()) {
    std::vector<at::Tensor> places;
    std::vector<int64_t> sizes;
    for (const size_t i : small_) {
      places.push_back(parameters_[i].landing());
      sizes.push_back(places.back().size(1));
    }
    at::split_with_sizes_copy_out(places, outputs_[0].view({sharing_.ranks(), -1}), sizes, 1);
  }
  inputs_.clear();
  outputs_.clear();
}

void Gather::finish() {
  if (state_ != State::under_way) return;
  state_ = State::whole;
  if (there_) {
    there_->block(current_stream(sharing_.gather_stream->device()));
    there_.reset();
  } else {
    const at::NoGradGuard no_grad;
    land();
  }
}

// The memory is the gather stream's. The next to get it waits until what is queued here is done.
void Gather::free() {
  if (stays_) return;
  finish();
  if (state_ == State::free) return;
  if (sharing_.gather_stream) {
    wait_for(current_stream(sharing_.gather_stream->device()), *sharing_.gather_stream);
  }
  for (auto& parameter : parameters_) parameter.release();
  state_ = State::free;
}

}  // namespace distributed_utils::detail
