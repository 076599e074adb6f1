// This library's collectives against NCCL itself on GPUs, and against c10d's bare Gloo on CPUs, on
// the ranks of one machine: extra_us is what a call costs more.
//   collectives_benchmark [--device=cpu|cuda] [--ranks=N] [--benchmark_...]
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <cstdlib>
#include <functional>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "pairs.hpp"
#include "ranks.hpp"
#include "raw_collectives.hpp"

namespace {

namespace du = distributed_utils;

class Calls {
 public:
  explicit Calls(const du::World& world) : world_(world) {
    // Beside the store in which setup() met.
    const std::string place = std::getenv("INIT_METHOD") + sizeof("file://") - 1;
    auto store = c10::make_intrusive<c10d::FileStore>(place + ".raw", world.world_size);
    raw_ = world.device.is_cuda() ? raw::make_nccl(store, world.rank, world.world_size)
                                  : raw::make_gloo(store, world.rank, world.world_size);
  }

  void all_reduce(benchmark::State& state) {
    const auto tensor = make(state);
    compare(
        state, [&] { raw_->all_reduce(tensor); }, [&] { du::all_reduce(tensor); });
  }
  void broadcast(benchmark::State& state) {
    const auto tensor = make(state);
    compare(
        state, [&] { raw_->broadcast(tensor); }, [&] { du::broadcast(tensor, 0); });
  }
  // Ours makes room for the result, too.
  void all_gather(benchmark::State& state) {
    const auto tensor = make(state);
    const auto into = torch::empty({world_.world_size, tensor.numel()}, tensor.options());
    compare(
        state, [&] { raw_->all_gather(tensor, into); }, [&] { du::all_gather(tensor); });
  }

 private:
  torch::Tensor make(const benchmark::State& state) const {
    return torch::zeros({state.range(0) / 4}, world_.device);
  }

  void compare(benchmark::State& state, const std::function<void()>& bare,
               const std::function<void()>& ours) const {
    const auto whole = [this](const std::function<void()>& call) {
      return [this, &call] {
        call();
        ranks::wait_for(world_.device);
      };
    };
    pairs::compare(state, whole(bare), whole(ours));
    state.SetBytesProcessed(state.iterations() * state.range(0));
  }

  du::World world_;
  std::unique_ptr<raw::Collectives> raw_;
};

void register_all(Calls& calls) {
  using Call = void (Calls::*)(benchmark::State&);
  for (const auto& [name, call] : {std::pair<const char*, Call>{"all_reduce", &Calls::all_reduce},
                                   {"broadcast", &Calls::broadcast},
                                   {"all_gather", &Calls::all_gather}}) {
    const auto add = [&calls, name = name, call = call](int64_t bytes, int iterations) {
      benchmark::RegisterBenchmark(name, [&calls, call](auto& state) { (calls.*call)(state); })
          ->ArgName("bytes")
          ->Arg(bytes)
          ->UseManualTime()
          ->Iterations(iterations);
    };
    add(4, 2000);
    add(4 << 10, 2000);
    add(256 << 10, 1000);
    add(16 << 20, 60);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char*> all(argv, argv + argc + 1);
  const auto setting = ranks::take_setting(argc, argv, 2);
  if (const int code = ranks::start(setting.ranks, const_cast<char**>(all.data())); code >= 0) {
    return code;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torch::set_num_threads(1);
  const auto world = du::setup({.device = setting.device});
  {
    Calls calls(world);
    register_all(calls);
    ranks::run_benchmarks(world.rank);
  }
  du::destroy_process_group();
}
