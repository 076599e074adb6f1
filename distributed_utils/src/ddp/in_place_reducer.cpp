#include "ddp/in_place_reducer.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <utility>

#include "distributed_utils/error.hpp"
#include "group/streams.hpp"

namespace distributed_utils::detail {
namespace {

using Future = c10::ivalue::Future;

// From here on a gradient travels from where it is, if others travel with it: putting it together
// with them would take longer than NCCL takes for one tensor more.
constexpr size_t kLargeBytes = size_t{1} << 20;

/// True if its memory, from beginning to end, is what a bucket holds of it.
bool is_laid_out_as(const at::Tensor& gradient, const at::Tensor& view) {
  return !gradient.requires_grad() && gradient.scalar_type() == view.scalar_type() &&
         gradient.strides().equals(view.strides()) && gradient.is_non_overlapping_and_dense();
}

at::Tensor in_order_of_memory(const at::Tensor& gradient, const at::Tensor& view) {
  const auto made =
      is_laid_out_as(gradient, view)
          ? gradient
          : at::empty_strided(view.sizes(), view.strides(), gradient.options().dtype(view.dtype()))
                .copy_(gradient);
  return made.as_strided({made.numel()}, {1});
}

/// A part of `flat`, laid out as `like`. In autograd's eyes it is not a view: Optimizer::zero_grad
/// of LibTorch would refuse one.
at::Tensor part_of(const at::Tensor& flat, int64_t offset, const at::Tensor& like) {
  const at::AutoDispatchBelowADInplaceOrView raw;
  return flat.as_strided(like.sizes(), like.strides(), offset);
}

/// The gradients of a bucket, ready to go.
struct Load {
  std::vector<at::Tensor> flat;                           // what travels
  std::vector<at::Tensor> gradients;                      // of the parameters, parts of that
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to make on arrival: to, from
};

/// views: how the bucket lays them out.
Load put_together(std::vector<at::Tensor> gradients, const std::vector<at::Tensor>& views,
                  bool may_be_several) {
  Load load;
  std::vector<at::Tensor> small;
  std::vector<size_t> which;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto& gradient = gradients[i];
    const bool alone =
        gradients.size() == 1 || (may_be_several && gradient.nbytes() >= kLargeBytes);
    const auto flat = in_order_of_memory(gradient, views[i]);
    if (alone && flat.is_alias_of(gradient)) {
      load.flat.push_back(flat);
    } else {
      small.push_back(flat);
      which.push_back(i);
    }
  }
  const auto together = small.empty() ? at::Tensor() : at::cat(small);
  if (!small.empty()) load.flat.push_back(together);
  int64_t offset = 0;
  for (const size_t i : which) {
    const auto part = part_of(together, offset, views[i]);
    offset += part.numel();
    if (gradients[i].requires_grad()) {
      load.copies.emplace_back(gradients[i], part);  // it keeps its graph
    } else {
      gradients[i] = part;
    }
  }
  load.gradients = std::move(gradients);
  return load;
}

// Divided before they are added up, to the bits of c10d: as NCCL's average does.
c10::intrusive_ptr<Future> average(const Group& group, std::vector<at::Tensor> tensors,
                                   bool on_gpu) {
  c10d::AllreduceCoalescedOptions options;
  if (on_gpu) {
    options.reduceOp = c10d::ReduceOp::AVG;
  } else {
    for (auto& tensor : tensors) tensor.mul_(1.0 / group->getSize());
  }
  const auto work = tensors.size() == 1 ? group->allreduce(tensors, options)
                                        : group->allreduce_coalesced(tensors, options);
  return work->getFuture();
}

/// While it lives, the parameters have no gradients: c10d would move them into the new buckets.
class GradientsAside {
 public:
  explicit GradientsAside(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const auto& parameter : parameters_) {
      gradients_.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
    }
  }
  ~GradientsAside() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = std::move(gradients_[i]);
    }
  }
  GradientsAside(const GradientsAside&) = delete;
  GradientsAside& operator=(const GradientsAside&) = delete;

 private:
  std::vector<at::Tensor> parameters_, gradients_;
};

}  // namespace

bool InPlaceReducer::can(const DistributedDataParallelOptions& options) {
  return !options.gradient_as_bucket_view && !options.find_unused_parameters;
}

std::shared_ptr<InPlaceReducer> InPlaceReducer::make(
    TrainableParameters parameters, const Buckets& buckets, const Group& group,
    const DistributedDataParallelOptions& options) {
  const GradientsAside aside(parameters.tensors);
  return std::shared_ptr<InPlaceReducer>(
      new InPlaceReducer(std::move(parameters), buckets, group, options));
}

// As if gradients were views of the buckets already, so that c10d copies nothing.
InPlaceReducer::InPlaceReducer(TrainableParameters parameters, const Buckets& buckets,
                               const Group& group, const DistributedDataParallelOptions& options)
    : Reducer(parameters, buckets, group, options, /*as_views=*/true),
      names_(std::move(parameters.names)),
      ready_(params_.size()) {
  set_optimizer_in_backward();  // in c10d's words: copy nothing back
  Reducer::set_hook([this](const Group&, c10d::GradBucket& bucket) { return send(bucket); });
  remove_autograd_hooks();
  grad_accumulators_.clear();
  forgo_buckets();
}

// What stands for c10d's buckets is never written or read: memory of the host that it never gets.
void InPlaceReducer::forgo_buckets() {
  for (auto& bucket : buckets_) {
    bucket.gradients =
        at::empty(bucket.gradients.sizes(), bucket.gradients.options().device(at::kCPU));
    for (auto& view : bucket.bucket_views_in) {
      view = bucket.gradients.as_strided(view.sizes(), view.strides(), view.storage_offset());
    }
    bucket.bucket_views_out = bucket.bucket_views_in;
  }
}

void InPlaceReducer::prepare(const std::vector<at::Tensor>& outputs) {
  if (!std::exchange(listens_, true)) listen();
  Reducer::prepare(outputs);
}

// To the accumulators that the first forward() has made, each on the stream that uses its
// parameter. Those of c10d's constructor would all make the stream wait that was current there.
void InPlaceReducer::listen() {
  for (const auto& parameter : params_) {
    grad_accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
  }
  for (size_t i = 0; i < params_.size(); ++i) {
    using Variables = torch::autograd::variable_list;
    auto hook = [this, i](const Variables& outputs, const Variables&) {
      hand_over(i);
      return outputs;
    };
    hooks_.emplace_back(grad_accumulators_[i]->add_post_hook(
                            std::make_unique<torch::autograd::utils::LambdaPostHook>(hook)),
                        grad_accumulators_[i]);
  }
}

// c10d finds the bucket's view where the gradient was, and assumes that it has been copied.
void InPlaceReducer::hand_over(size_t index) {
  if (!expect_autograd_hooks_) return autograd_hook(index);  // under no_sync()
  auto& gradient = params_[index].mutable_grad();
  if (!gradient.defined()) gradient = at::zeros_like(params_[index]);  // other ranks may have one
  if (gradient.layout() != at::kStrided) {
    throw Error(
        fmt::format("DistributedDataParallel: the gradient of {} is sparse. Fix: make its "
                    "embedding without EmbeddingOptions::sparse.",
                    names_.at(index)));
  }
  const auto [bucket, place] = variable_locators_[index];
  const auto own = std::exchange(gradient, buckets_[bucket].bucket_views_in[place]);
  ready_[index] = {own, current_stream(own.device())};
  try {
    autograd_hook(index);
  } catch (...) {
    gradient = own;
    throw;
  }
  if (ready_[index]) gradient = own;  // else send() was called
}

// Of a bucket, for use on the current stream.
std::vector<at::Tensor> InPlaceReducer::take_ready(const std::vector<size_t>& indices) {
  std::vector<at::Tensor> gradients;
  for (const size_t index : indices) {
    const auto ready = std::exchange(ready_[index], std::nullopt);
    const auto here = current_stream(ready->gradient.device());
    if (ready->stream != here) {
      wait_for(ready->stream, here);
      ready->gradient.record_stream(here);
    }
    gradients.push_back(ready->gradient);
  }
  return gradients;
}

// Called once all of the bucket are ready and it is its turn.
c10::intrusive_ptr<Future> InPlaceReducer::send(c10d::GradBucket& bucket) {
  const at::NoGradGuard no_grad;
  const auto& books = buckets_[bucket.getIndex()];
  auto gradients = take_ready(books.variable_indices);
  const auto backend = process_group_->getBackend(gradients[0].device().type());
  const bool on_gpu = backend->getBackendName() == "nccl";
  const auto load = put_together(std::move(gradients), books.bucket_views_in,
                                 /*may_be_several=*/on_gpu && !hook_);
  for (size_t i = 0; i < load.gradients.size(); ++i) {
    books.variables[i].mutable_grad() = load.gradients[i];
  }
  auto buffer = load.flat[0];
  bucket.setBuffer(buffer);
  const auto reduced =
      hook_ ? hook_(process_group_, bucket) : average(process_group_, load.flat, on_gpu);
  return reduced->then(
      [load, stand_in = books.gradients](Future& done) {
        if (done.hasError()) std::rethrow_exception(done.exception_ptr());
        const at::NoGradGuard no_grad;
        const auto result = c10d::detail::parseCppCommHookResult(done.value());
        if (result.const_data_ptr() != load.flat[0].const_data_ptr()) load.flat[0].copy_(result);
        for (const auto& [to, from] : load.copies) to.copy_(from);
        // c10d has nothing to copy from the one, but has to wait for the others.
        std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> awaited;
        for (const auto& tensor : load.flat) {
          awaited.push_back(tensor.storage().getWeakStorageImpl());
        }
        return std::make_tuple(c10::IValue(stand_in), std::move(awaited));
      },
      c10::TensorType::get());
}

void InPlaceReducer::set_hook(CommHook hook) { hook_ = std::move(hook); }

void InPlaceReducer::settle_buckets() {
  if (!should_rebuild_buckets()) return;
  const GradientsAside aside(params_);
  if (rebuild_buckets()) forgo_buckets();
}

}  // namespace distributed_utils::detail
