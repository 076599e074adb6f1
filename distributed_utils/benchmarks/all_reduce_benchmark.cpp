// all_reduce of this library against c10d's own, on two ranks of one machine: extra_us is what the
// wrapper adds to a call.
#include "pairs.hpp"

#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace {

namespace du = distributed_utils;

void all_reduce(benchmark::State& state) {
  const auto tensor = torch::zeros({state.range(0) / 4});
  const auto raw = [&, group = du::world_group()] {
    std::vector<torch::Tensor> tensors = {tensor};
    group->allreduce(tensors)->wait();
  };
  pairs::compare(state, raw, [&] { du::all_reduce(tensor); });
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// The same number of iterations on all ranks, or one would wait for the others.
BENCHMARK(all_reduce)->ArgName("bytes")->Arg(4)->Arg(4 << 10)->UseManualTime()->Iterations(4000);
BENCHMARK(all_reduce)->ArgName("bytes")->Arg(256 << 10)->UseManualTime()->Iterations(1000);
BENCHMARK(all_reduce)->ArgName("bytes")->Arg(16 << 20)->UseManualTime()->Iterations(60);

class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& /*runs*/) override {}
};

}  // namespace

int main(int argc, char** argv) {
  if (const int code = ranks::start(2, argv); code >= 0) return code;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torch::set_num_threads(1);
  const auto world = du::setup({.device = torch::Device(torch::kCPU)});
  Silent silent;
  if (world.rank == 0) {
    benchmark::RunSpecifiedBenchmarks();
  } else {
    benchmark::RunSpecifiedBenchmarks(&silent);
  }
  du::destroy_process_group();
}
