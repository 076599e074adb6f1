#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "raw_collectives.hpp"

namespace raw {
namespace {

// c10d's thinnest layer over Gloo, without the dispatcher: the headers of Gloo that systems have
// are not those of the Gloo within LibTorch.
class Gloo : public Collectives {
 public:
  Gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size)
      : gloo_(make(store, rank, size)) {}

  void all_reduce(const at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    gloo_->allreduce(tensors, {})->wait();
  }

  void broadcast(const at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    gloo_->broadcast(tensors, {})->wait();
  }

  void all_gather(const at::Tensor& tensor, const at::Tensor& into) override {
    std::vector<at::Tensor> inputs{tensor};
    std::vector<std::vector<at::Tensor>> outputs{into.unbind()};
    gloo_->allgather(outputs, inputs, {})->wait();
  }

 private:
  static c10::intrusive_ptr<c10d::ProcessGroupGloo> make(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
    auto options = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(60));
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, options);
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
};

}  // namespace

std::unique_ptr<Collectives> make_gloo(c10::intrusive_ptr<c10d::Store> store, int rank, int size) {
  return std::make_unique<Gloo>(store, rank, size);
}

}  // namespace raw
