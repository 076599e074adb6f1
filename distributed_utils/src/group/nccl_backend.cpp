#include "distributed_utils/error.hpp"
#include "group/backend.hpp"

#ifdef USE_C10D_NCCL
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace distributed_utils::detail {

#ifdef USE_C10D_NCCL
bool has_nccl() { return true; }

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendRequest& request) {
  // A rank whose wait timed out sleeps four times this long before it says so, for the sake of a
  // flight record that nobody has asked for.
  if (!getenv("TORCH_NCCL_TRACE_BUFFER_SIZE")) {
    setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "250", /*overwrite=*/0);
  }
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(request.store, request.rank, request.size,
                                                     options);
}
#else
bool has_nccl() { return false; }

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendRequest& /*request*/) {
  throw Error(
      "backend 'nccl' needs a build with CUDA. Fix: --backend gloo, or ./workbook start --cuda.");
}
#endif

}  // namespace distributed_utils::detail
