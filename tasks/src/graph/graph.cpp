#include "graph/graph.hpp"

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>

#ifdef USE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/cuda.h>
#endif

namespace tasks::graph {
namespace {

[[maybe_unused]] std::optional<torch::Device> wanted_on;

class StandIn : public Graph {
 public:
  void capture(const Work& /*work*/) override {}
  void replay(const Work& work) override { work(); }
  bool host_runs_capture() const override { return false; }
};

bool stands_in() {
  const char* value = std::getenv("WORLDSIZE_GRAPH_STAND_IN");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "1";
}

#ifdef USE_CUDA
class CudaGraph : public Graph {
 public:
  explicit CudaGraph(at::cuda::MempoolId_t memory) : memory_(memory) {}

  void capture(const Work& work) override {
    // Other threads (NCCL's watchdog) may go on with calls that a capture forbids this one.
    graph_.capture_begin(memory_, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_after_failure();
      throw;
    }
    graph_.capture_end();
  }
  void replay(const Work& /*work*/) override { graph_.replay(); }
  bool host_runs_capture() const override { return true; }
  at::cuda::MempoolId_t memory() const { return memory_; }

 private:
  // The stream must not go on capturing; that what was captured is of no use is known already.
  void end_after_failure() {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  at::cuda::MempoolId_t memory_;
  at::cuda::CUDAGraph graph_;
};
#endif

}  // namespace

bool can_capture(torch::Device device) {
#ifdef USE_CUDA
  if (device.is_cuda()) return true;
#endif
  return device.is_cpu() && stands_in();
}

std::unique_ptr<Graph> new_graph(torch::Device device, [[maybe_unused]] const Graph* first) {
#ifdef USE_CUDA
  if (device.is_cuda()) {
    const auto* older = dynamic_cast<const CudaGraph*>(first);
    return std::make_unique<CudaGraph>(older ? older->memory() : at::cuda::graph_pool_handle());
  }
#endif
  if (!can_capture(device)) throw std::logic_error("no graph can be captured on this device");
  return std::make_unique<StandIn>();
}

void remember(const Options& options) {
  const bool on_gpu = !options.device || options.device->is_cuda();
  wanted_on = options.fast.has("graph") && on_gpu
                  ? std::optional(options.device.value_or(torch::kCUDA))
                  : std::nullopt;
}

void leave_default_stream() {
#ifdef USE_CUDA
  if (!wanted_on || !torch::cuda::is_available()) return;
  const auto index = wanted_on->has_index() ? wanted_on->index() : c10::cuda::current_device();
  if (c10::cuda::getCurrentCUDAStream(index) != c10::cuda::getDefaultCUDAStream(index)) return;
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index));
#endif
}

}  // namespace tasks::graph
