#include "operators/embedding_rows.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <limits>

#include "distributed_utils/collectives.hpp"
#include "tasks/options.hpp"

#ifdef USE_CUDA
#include "gpu.hpp"
#include "kernels/kernels.hpp"
#endif

namespace tasks::operators {
namespace {

/// What a rank sends, in one piece: [most, width] rows, then the int32 [most] words that they
/// belong to. -1: none.
struct Parcel {
  at::Tensor rows, words;

  Parcel(const at::Tensor& whole, int64_t most)
      : rows(whole.narrow(0, 0, whole.numel() - most).view({most, -1})),
        words(whole.narrow(0, whole.numel() - most, most).view(at::kInt)) {}
};

#ifdef USE_CUDA
void fill(const Parcel& parcel, const at::Tensor& gradient, const at::Tensor& indices) {
  const auto rows = gradient.contiguous();
  const auto which = indices.contiguous();
  kernels::embedding_rows(rows.const_data_ptr<float>(), which.const_data_ptr<int64_t>(),
                          which.numel(), parcel.words.numel(), rows.size(-1),
                          parcel.rows.mutable_data_ptr<float>(),
                          parcel.words.mutable_data_ptr<int>(), stream_of(rows));
}

// Room for the result is made ready while parcels travel.
at::Tensor mean_on_gpu(const at::Tensor& mine, const distributed_utils::Group& group, int64_t most,
                       int64_t words) {
  const int64_t ranks = group->getSize();
  const int64_t width = mine.numel() / most - 1;
  const auto parcels = at::empty({ranks, mine.numel()}, mine.options());
  auto work = distributed_utils::all_gather_async(parcels, mine, group);
  const auto slots = at::full({ranks, words}, -1, mine.options().dtype(at::kInt));
  auto result = at::zeros({words, width}, mine.options());
  work.wait();
  kernels::mean_of_rows({.all = parcels.const_data_ptr<float>(),
                         .ranks = ranks,
                         .most = most,
                         .width = width,
                         .words = words},
                        slots.mutable_data_ptr<int>(), result.mutable_data_ptr<float>(),
                        stream_of(mine));
  return result;
}
#endif

void fill_on_cpu(const Parcel& parcel, const at::Tensor& gradient, const at::Tensor& indices,
                 int64_t words) {
  const auto sums = at::embedding_dense_backward(gradient, indices, words, /*padding_idx=*/-1,
                                                 /*scale_grad_by_freq=*/false);
  const auto used = std::get<0>(at::_unique2(indices.flatten()));
  parcel.rows.narrow(0, 0, used.numel()).copy_(sums.index_select(0, used));
  parcel.words.fill_(-1).narrow(0, 0, used.numel()).copy_(used);
}

at::Tensor mean_on_cpu(const at::Tensor& parcels, int64_t most, int64_t words) {
  auto result = at::zeros({words, parcels.size(1) / most - 1}, parcels.options());
  for (const auto& whole : parcels.unbind()) {  // in the order of ranks: the same bits for all
    const Parcel parcel(whole, most);
    const auto used = parcel.words.ge(0).sum().item<int64_t>();
    result.index_add_(0, parcel.words.narrow(0, 0, used), parcel.rows.narrow(0, 0, used));
  }
  return result.div_(parcels.size(0));
}

}  // namespace

// Up to a multiple of four, so that kernels may read four numbers at once.
EmbeddingRows::EmbeddingRows(distributed_utils::Group group, int64_t most)
    : group_(std::move(group)), most_((most + 3) / 4 * 4) {}

bool EmbeddingRows::pays_for(const at::Tensor& weight) const {
  if (weight.scalar_type() != at::kFloat) return false;
  if (weight.size(0) > std::numeric_limits<int>::max()) return false;
#ifdef USE_CUDA
  if (weight.is_cuda() && most_ > kernels::kMostEmbeddingIndices) return false;
#endif
  // Each rank gets a parcel of each other one. In a ring's all-reduce it gets 2 (ranks - 1) / ranks
  // of the gradient (Patarasuk and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002).
  return group_->getSize() * most_ * (weight.size(1) + 1) < 2 * weight.numel();
}

at::Tensor EmbeddingRows::mean(const at::Tensor& gradient, const at::Tensor& indices,
                               int64_t words) const {
  if (indices.numel() > most_) {
    throw Error(
        fmt::format("the embedding got {} words at once, but ranks have room for {}. Fix: use "
                    "batches of at most --batch-size, or --fast without embedding.",
                    indices.numel(), most_));
  }
  const auto mine = at::zeros({most_ * (gradient.size(-1) + 1)}, gradient.options());
#ifdef USE_CUDA
  if (gradient.is_cuda()) {
    fill(Parcel(mine, most_), gradient, indices);
    return mean_on_gpu(mine, group_, most_, words);
  }
#endif
  fill_on_cpu(Parcel(mine, most_), gradient, indices, words);
  return mean_on_cpu(distributed_utils::all_gather(mine, group_), most_, words);
}

}  // namespace tasks::operators
