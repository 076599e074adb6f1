#include <ATen/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <cstring>

#include "raw_collectives.hpp"

namespace raw {
namespace {

void check(ncclResult_t result) {
  TORCH_CHECK(result == ncclSuccess, "NCCL: ", ncclGetErrorString(result));
}

ncclUniqueId agree(c10d::Store& store, int rank) {
  ncclUniqueId id{};
  if (rank == 0) {
    check(ncclGetUniqueId(&id));
    const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
    store.set("id", std::vector<uint8_t>(bytes, bytes + sizeof id));
  } else {
    const auto bytes = store.get("id");
    TORCH_CHECK(bytes.size() == sizeof id);
    std::memcpy(&id, bytes.data(), sizeof id);
  }
  return id;
}

class Nccl : public Collectives {
 public:
  Nccl(c10d::Store& store, int rank, int size) {
    check(ncclCommInitRank(&communicator_, size, agree(store, rank), rank));
  }
  ~Nccl() override { ncclCommDestroy(communicator_); }

  void all_reduce(const at::Tensor& tensor) override {
    auto* data = tensor.data_ptr<float>();
    check(ncclAllReduce(data, data, static_cast<size_t>(tensor.numel()), ncclFloat, ncclSum,
                        communicator_, stream()));
  }

  void broadcast(const at::Tensor& tensor) override {
    auto* data = tensor.data_ptr<float>();
    check(ncclBroadcast(data, data, static_cast<size_t>(tensor.numel()), ncclFloat, /*root=*/0,
                        communicator_, stream()));
  }

  void all_gather(const at::Tensor& tensor, const at::Tensor& into) override {
    check(ncclAllGather(tensor.data_ptr<float>(), into.data_ptr<float>(),
                        static_cast<size_t>(tensor.numel()), ncclFloat, communicator_, stream()));
  }

 private:
  static cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank, int size) {
  return std::make_unique<Nccl>(*store, rank, size);
}

}  // namespace raw
