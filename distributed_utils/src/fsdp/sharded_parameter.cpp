#include "fsdp/sharded_parameter.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {
namespace {

std::vector<int64_t> with_rows(at::IntArrayRef sizes, int64_t rows) {
  auto result = sizes.vec();
  result[0] = rows;
  return result;
}

/// The first elements of flat memory, shaped. In autograd's eyes it is not a view:
/// Optimizer::zero_grad of LibTorch would refuse one as a gradient.
at::Tensor shaped(const at::Tensor& flat, const std::vector<int64_t>& sizes) {
  const at::AutoDispatchBelowADInplaceOrView raw;
  return flat.narrow(0, 0, c10::multiply_integers(sizes)).view(sizes);
}

/// A storage that throws these words when it is read or written. It says that it is as large as the
/// other, so that views can be made, which linear layers do first.
c10::Storage speaking_storage(const c10::Storage& other, const std::string& words) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), other.nbytes(), c10::DataPtr(nullptr, other.device()),
      nullptr, /*resizable=*/false);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(words);
  return c10::Storage(std::move(storage));
}

std::string words_for(const std::string& name) {
  return fmt::format(
      "The parameter {} is sharded: FullyShardedDataParallel holds the whole of it only while its "
      "unit computes. Fix: call model->forward(), not the module's or a block's own; give "
      "optimizers model->parameters(), which are the shards; to read whole parameters keep "
      "model->summon_full_params() alive.",
      name);
}

void set_memory(const c10::Storage& storage, size_t bytes) {
  auto* const memory = storage.unsafeGetStorageImpl();
  memory->set_data_ptr_noswap(bytes == 0 ? c10::DataPtr(nullptr, storage.device())
                                         : memory->allocator()->allocate(bytes));
  memory->set_nbytes(bytes);
}

}  // namespace

ShardedParameter::ShardedParameter(std::string name, at::Tensor whole)
    : name_(std::move(name)), whole_(std::move(whole)) {
  {
    const at::AutoDispatchBelowADInplaceOrView raw;
    shard_ = whole_.as_strided(whole_.sizes(), whole_.strides(), whole_.storage_offset());
  }
  shard_.set_requires_grad(whole_.requires_grad());
}

ShardedParameter::ShardedParameter(std::string name, at::Tensor whole, const Sharing& sharing,
                                   at::Tensor chunk)
    : name_(std::move(name)),
      whole_(std::move(whole)),
      chunk_(std::move(chunk)),
      ranks_(sharing.ranks()) {
  const at::NoGradGuard no_grad;
  const int64_t rows = whole_.size(0);
  const int64_t each = chunk_rows(rows, ranks_);
  first_ = std::min(rows, sharing.rank() * each);
  const int64_t count = std::min(rows - first_, each);
  shard_ = shaped(chunk_, with_rows(whole_.sizes(), count));
  shard_.copy_(whole_.detach().narrow(0, first_, count));
  shard_.set_requires_grad(whole_.requires_grad());

  padded_ = at::empty(with_rows(whole_.sizes(), each * ranks_),
                      whole_.options()
                          .dtype(sharing.compute_type(whole_.scalar_type()))
                          .requires_grad(false)
                          .memory_format(at::MemoryFormat::Contiguous));
  const bool is_trained = whole_.requires_grad();
  whole_.set_data(padded_.narrow(0, 0, rows));
  whole_.set_requires_grad(is_trained);
  stand_in_ = speaking_storage(padded_.storage(), words_for(name_));
  release();
}

void ShardedParameter::allocate() {
  set_memory(padded_.storage(), static_cast<size_t>(padded_.numel()) * padded_.element_size());
  whole_.unsafeGetTensorImpl()->set_storage_keep_dtype(padded_.storage());
}

void ShardedParameter::release() {
  whole_.unsafeGetTensorImpl()->set_storage_keep_dtype(stand_in_);
  set_memory(padded_.storage(), 0);
}

at::Tensor ShardedParameter::landing() const {
  const int64_t each = padded_.numel() / ranks_;
  // A tensor of its own over the storage, so that it counts versions of its own.
  return at::empty({0}, padded_.options()).set_(padded_.storage(), 0, {ranks_, each}, {each, 1});
}

void ShardedParameter::keep_gradient(at::ScalarType type) {
  if (!whole_.grad().defined() || whole_.grad().scalar_type() == type) return;
  const at::NoGradGuard no_grad;
  const at::Tensor gradient = std::exchange(whole_.mutable_grad(), at::Tensor());
  if (added_up_.defined()) {
    added_up_.add_(gradient);
  } else {
    added_up_ = gradient.to(type);
  }
}

at::Tensor ShardedParameter::take_gradient() {
  const at::Tensor gradient = std::exchange(whole_.mutable_grad(), at::Tensor());
  const at::Tensor before = std::exchange(added_up_, at::Tensor());
  if (gradient.defined() && gradient.layout() != at::kStrided) {
    throw Error(
        fmt::format("FullyShardedDataParallel: the gradient of {} is sparse. Fix: make its "
                    "embedding without EmbeddingOptions::sparse.",
                    name_));
  }
  if (before.defined()) return gradient.defined() ? before.add(gradient.detach()) : before;
  if (gradient.defined()) return gradient.detach().contiguous();
  return at::zeros(whole_.sizes(), whole_.options().requires_grad(false));
}

void ShardedParameter::drop_gradient() {
  whole_.mutable_grad().reset();
  added_up_.reset();
}

void ShardedParameter::add_shard_gradient(const at::Tensor& part) {
  const at::Tensor gradient = shaped(part, shard_.sizes().vec());
  at::Tensor& own = shard_.mutable_grad();
  if (own.defined()) {
    own.add_(gradient);
  } else {
    own = gradient;
  }
}

}  // namespace distributed_utils::detail
