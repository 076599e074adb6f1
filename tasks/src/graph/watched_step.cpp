#include "graph/watched_step.hpp"

#include <c10/util/Exception.h>

#include <string_view>

#ifdef USE_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace tasks::graph {
namespace {

thread_local WatchedStep* watched = nullptr;

}  // namespace

const char* in_words(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::none:
      return "nothing is in the way";
    case Obstacle::no_device:
      return "LibTorch finds no usable GPU here";
    case Obstacle::reads:
      return "the training step reads a GPU value on the host, for example with item() or cpu()";
    case Obstacle::accumulates:
      return "the task's optimizer does not step exactly once in each training step";
    case Obstacle::host_optimizer:
      return "the optimizer keeps its step count or learning rate on the host";
  }
  return "";
}

// LibTorch warns of each operator for which the host waits, if it is asked to
// (torch.cuda.set_sync_debug_mode). Warnings of backward() come to this thread as well.
class WatchedStep::Reads : public c10::WarningHandler {
 public:
  Reads() : before_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
    ask(true);
  }
  ~Reads() override {
    ask(false);
    c10::WarningUtils::set_warning_handler(before_);
  }
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  void process(const c10::Warning& warning) override {
    if (std::string_view(warning.msg()).find("synchronizing CUDA operation") == std::string::npos) {
      return before_->process(warning);
    }
    seen_ = true;
  }
  bool seen() const { return seen_; }

 private:
  static void ask([[maybe_unused]] bool for_warnings) {
#ifdef USE_CUDA
    using c10::cuda::SyncDebugMode;
    c10::cuda::warning_state().set_sync_debug_mode(for_warnings ? SyncDebugMode::L_WARN
                                                                : SyncDebugMode::L_DISABLED);
#endif
  }

  c10::WarningHandler* before_;
  bool seen_ = false;
};

WatchedStep::WatchedStep() : reads_(std::make_unique<Reads>()) { watched = this; }

WatchedStep::~WatchedStep() { watched = nullptr; }

void WatchedStep::note_step(const torch::optim::Optimizer& optimizer) {
  if (watched == nullptr) return;
  ++watched->steps_;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is told of replays, later
  auto* const known = dynamic_cast<Replayable*>(const_cast<torch::optim::Optimizer*>(&optimizer));
  if (known == nullptr) watched->unknown_ = true;
  watched->optimizer_ = known;
}

Obstacle WatchedStep::obstacle() const {
  if (unknown_) return Obstacle::host_optimizer;
  if (steps_ != 1) return Obstacle::accumulates;
  return reads_->seen() ? Obstacle::reads : Obstacle::none;
}

}  // namespace tasks::graph
