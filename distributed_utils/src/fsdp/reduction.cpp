#include "fsdp/reduction.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include "fsdp/gather.hpp"
#include "group/streams.hpp"

namespace distributed_utils::detail {
namespace {

/// With rows of zeros, so that every rank's part has as many, flat.
at::Tensor padded_to_chunks(const at::Tensor& gradient, int64_t ranks) {
  const int64_t missing = chunk_rows(gradient.size(0), ranks) * ranks - gradient.size(0);
  if (missing == 0) return gradient.view({-1});
  std::vector<int64_t> padding(2 * gradient.dim(), 0);
  padding.back() = missing;
  return at::constant_pad_nd(gradient, padding).view({-1});
}

}  // namespace

Reduction::Reduction(std::vector<ShardedParameter>& parameters, const Sharing& sharing)
    : sharing_(sharing) {
  for (auto& parameter : parameters) {
    if (!parameter.is_trained()) continue;
    (Gather::is_small(parameter.whole()) ? small_ : large_).push_back(&parameter);
  }
}

void Reduction::start() {
  const at::NoGradGuard no_grad;
  for (const auto* group : {&small_, &large_}) {
    for (auto* parameter : *group) gradients_.push_back(parameter->take_gradient());
  }
  if (sharing_.reduce_stream) {
    wait_for(current_stream(sharing_.reduce_stream->device()), *sharing_.reduce_stream);
  }
  const c10::OptionalStreamGuard on(sharing_.reduce_stream);
  put_together();
  if (!sharing_.reduce_stream) gradients_.clear();  // those that were copied are of no more use
  send();
  if (sharing_.reduce_stream) {
    land();
    there_.emplace(sharing_.reduce_stream->device_type());
    there_->record(*sharing_.reduce_stream);
  }
}

void Reduction::put_together() {
  const auto type = sharing_.policy.reduce_dtype.value_or(gradients_[0].scalar_type());
  const int64_t ranks = sharing_.ranks();
  if (!small_.empty()) {
    const std::vector<at::Tensor> parts(gradients_.begin(),
                                        gradients_.begin() + static_cast<int64_t>(small_.size()));
    int64_t total = 0;
    for (const auto& part : parts) total += ranks * chunk_numel(part, ranks);
    auto together = at::empty({ranks, total / ranks}, parts[0].options().dtype(type));
    at::_chunk_cat_out(together, parts, 0, ranks);
    inputs_.push_back(together.view({-1}));
  }
  for (size_t i = small_.size(); i < gradients_.size(); ++i) {
    inputs_.push_back(padded_to_chunks(gradients_[i].to(type), ranks));
  }
  if (!sharing_.backend_averages) {
    at::_foreach_div_(inputs_, static_cast<double>(ranks * sharing_.copies()));
  }
}

void Reduction::send() {
  if (sharing_.ranks() == 1) {
    outputs_ = inputs_;
    return;
  }
  for (const auto& input : inputs_) {
    outputs_.push_back(at::empty({input.numel() / sharing_.ranks()}, input.options()));
  }
  c10d::ReduceScatterOptions options;
  options.asyncOp = !sharing_.reduce_stream;
  if (sharing_.backend_averages) options.reduceOp = c10d::ReduceOp::AVG;
  work_ = sharing_.group->reduce_scatter_tensor_coalesced(outputs_, inputs_, options);
}

void Reduction::land() {
  if (work_) work_->wait();
  work_.reset();
  if (sharing_.copies() > 1) {
    c10d::AllreduceCoalescedOptions options;
    options.asyncOp = !sharing_.reduce_stream;
    if (sharing_.backend_averages) options.reduceOp = c10d::ReduceOp::AVG;
    const auto work = outputs_.size() == 1
                          ? sharing_.replicas->allreduce(outputs_, options)
                          : sharing_.replicas->allreduce_coalesced(outputs_, options);
    if (work) work->wait();
  }
  const auto stored = (small_.empty() ? large_ : small_)[0]->shard().scalar_type();
  for (auto& output : outputs_) output = output.to(stored);
  int64_t begin = 0;
  for (auto* parameter : small_) {
    const int64_t size = chunk_numel(parameter->whole(), sharing_.ranks());
    parameter->add_shard_gradient(outputs_[0].narrow(0, begin, size));
    begin += size;
  }
  for (size_t i = 0; i < large_.size(); ++i) {
    large_[i]->add_shard_gradient(outputs_[i + (small_.empty() ? 0 : 1)]);
  }
  inputs_.clear();
  outputs_.clear();
}

void Reduction::finish() {
  if (there_) {
    there_->block(current_stream(sharing_.reduce_stream->device()));
    there_.reset();
  } else {
    const at::NoGradGuard no_grad;
    land();
  }
  gradients_.clear();
}

}  // namespace distributed_utils::detail
