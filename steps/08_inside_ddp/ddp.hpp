// Step 08: DistributedDataParallel from the inside.
//
// The finished trainer again, but you write its DistributedDataParallel yourself: DataParallel in
// ddp.hpp. Begin with a correct and slow version. At the end gradients travel in buckets while
// backward() still computes.
//
// Run it: ./workbook run 08 --world 2
// Made by ./workbook render from checker/chapters/inside_ddp/ddp.hpp; it is yours now.

#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// Parameters whose gradients travel together.
struct Bucket {
  std::vector<torch::Tensor> parameters;
  size_t ready = 0;         // how many of their gradients this backward() has computed
  torch::Tensor gradients;  // all of them in a row, while they travel
  std::optional<Work> work;
};

// How much a bucket should hold: 25 MiB, as in PyTorch, or a quarter of a model that is small.
inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

// Keeps the models of all ranks alike: a DistributedDataParallel of our own.
class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    // TODO 18: Start from the same model.
    //   Give all ranks the parameters and the buffers of rank 0, here, before training.
    //
    //   Each rank has drawn its own weights. Averaged gradients never make them equal: equal steps
    //   from different places end in different places. A model also keeps buffers, which no
    //   gradient changes. BatchNorm's running means are an example.
    //
    //   module.parameters() and module.buffers() list the tensors. Every rank must send or receive
    //   each of them, in the same order.
    //
    //   Expect no difference with one rank. With two ranks, ./workbook check no longer says that
    //   the ranks start from different parameters.
    // TODO 21: Fill buckets.
    //   Let several gradients travel together, in buckets of about bucket_bytes() bytes. Do this
    //   TODO last. Three places change.
    //
    //   Here, put neighbours among the parameters into buckets_. backward() reaches the last
    //   parameters first, so begin with the last one. Then buckets fill one after the other, and
    //   the first message starts soonest. A parameter that no longer fits starts the next bucket. A
    //   parameter that is larger than a bucket gets its own. Every parameter is in exactly one
    //   bucket.
    //
    //   average() then copies the bucket's gradients one after the other into one tensor,
    //   bucket.gradients, and sends that. finish() copies the averages back, each into the gradient
    //   that it belongs to.
    //
    //   Expect the same losses, and fewer messages in ./workbook monitor.
    for (const auto& parameter : module.parameters()) {
      buckets_.emplace_back().parameters.push_back(parameter);
    }
    // TODO 20: Send gradients while backward() computes.
    //   Start a bucket's message as soon as its gradients are ready, while backward() still
    //   computes others. Three places change.
    //
    //   Here, register a hook on each parameter. backward() calls the hook each time it has added
    //   to the parameter's gradient:
    //
    //     register_post_accumulate_grad_hook(parameter, [...](const torch::Tensor&) {...});
    //
    //   The hook counts in bucket.ready. Once all gradients of the bucket are ready, it calls
    //   average(). average() must no longer wait: it starts the message and keeps its Work in
    //   bucket.work. finish() waits for that Work, before the optimizer reads the gradients.
    //
    //   All ranks run the same backward(), so their hooks run in the same order. If only some ranks
    //   had a hook, the others would wait.
    //
    //   Expect the same losses. ./workbook monitor shows messages inside the backward phase.
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Comes between backward() and the optimizer's step: afterwards all gradients are the means.
  void finish() {
    for (auto& bucket : buckets_) {
      // TODO 20, here too: wait for the message, instead of sending it.
      average(bucket);
      bucket.work.reset();
      bucket.ready = 0;
      // TODO 21, here too: put the averaged gradients back into their parameters.
    }
  }

 private:
  // Makes a bucket's gradients the means over all ranks.
  void average(Bucket& bucket) {
    // TODO 19: Average the gradients.
    //   Average the gradients of this bucket over all ranks.
    //
    //   finish() calls average() for every bucket, after backward() and before the optimizer's
    //   step. So far each bucket holds one parameter. The gradient of a parameter is
    //   parameter.grad(). The optimizer reads that tensor, so change its values and do not make
    //   another tensor.
    //
    //   This is the slow way. Nothing travels while backward() computes, and nothing computes while
    //   gradients travel. The next two TODOs change that.
    //
    //   With --world 2, expect losses close to those of one rank with twice the batch size.
  }

  std::vector<Bucket> buckets_;
};
