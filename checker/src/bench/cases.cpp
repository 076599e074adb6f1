#include <algorithm>

#include "bench/bench.hpp"

namespace checker::bench {

namespace {

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Arguments lengths(bool quick, bool gpus) {
  const int steps = gpus ? (quick ? 20 : 50) : (quick ? 8 : 40);
  return {"--steps=" + std::to_string(steps), "--repeats=" + std::to_string(quick ? 5 : 9)};
}

// What users run; the others time a step of their own.
Case trainer(const std::string& label, size_t ranks, Arguments arguments) {
  return {.label = "trainer, " + label,
          .ranks = ranks,
          .arguments = std::move(arguments),
          .trainer = true};
}

std::vector<Case> on_gpus(size_t most_ranks, bool quick) {
  const Arguments ours = lengths(quick, true) + Arguments{"--config=seed"};
  const Arguments peers = lengths(quick, true);
  std::vector<Case> all;
  for (size_t ranks = 1; ranks <= most_ranks; ranks = std::min(2 * ranks, most_ranks)) {
    const auto add = [&](const std::string& label, bool is_ours, const Arguments& arguments) {
      all.push_back({label, is_ours, ranks, (is_ours ? ours : peers) + arguments});
    };
    add("fp32", true, {"--precision=fp32"});
    add("fp32", false, {"fp32"});
    add("fp32, fused AdamW", false, {"fp32-fused"});
    add("TF32", true, {"--precision=tf32"});
    add("TF32", false, {"tf32"});
    add("TF32, --fast", true, {"--precision=tf32", "--fast"});
    add("bf16", true, {"--precision=bf16"});
    add("bf16", false, {"bf16"});
    add("TF32, compiled", false, {"tf32-compiled"});
    add("TF32, max-autotune", false, {"tf32-max-autotune"});
    add("bf16, compiled", false, {"bf16-compiled"});
    add("bf16, reduce-overhead", false, {"bf16-reduce-overhead"});
    add("bf16, max-autotune", false, {"bf16-max-autotune"});
    if (ranks == 1) {
      add("bf16, step in a graph", false, {"bf16-graph"});
      add("bf16, max-autotune, graph", false, {"bf16-max-autotune-graph"});
    }
    add("bf16, --fast", true, {"--precision=bf16", "--fast"});
    for (const char* const precision : {"tf32", "bf16"}) {
      all.push_back(trainer(
          std::string(precision == std::string("tf32") ? "TF32" : "bf16") + ", --fast", ranks,
          {"--config=seed", std::string("--precision=") + precision, "--fast",
           "--max-steps=" + std::to_string(quick ? 600 : 2000)}));
    }
    if (ranks == most_ranks) break;
  }
  if (most_ranks % 2 != 0) return all;
  const auto on_two_nodes = [&](const std::string& label, const Arguments& arguments) {
    all.push_back({label, true, most_ranks, ours + Arguments{"--nodes=2"} + arguments, 2});
  };
  on_two_nodes("fp32", {"--precision=fp32"});
  on_two_nodes("TF32", {"--precision=tf32"});
  on_two_nodes("TF32, --fast", {"--precision=tf32", "--fast"});
  on_two_nodes("bf16, --fast", {"--precision=bf16", "--fast"});
  return all;
}

std::vector<Case> on_cpus(size_t most_ranks, bool quick) {
  // The built-in language has so many words.
  const Arguments ours = lengths(quick, false) + Arguments{"--config=laptop", "--vocabulary=1802"};
  const Arguments peers =
      lengths(quick, false) + Arguments{"fp32",        "--vocabulary=1802", "--width=64",
                                        "--inner=256", "--batch=32",        "--warm-up=10"};
  std::vector<Case> all;
  for (const auto& [threads, ranks] : {std::pair<int, size_t>{1, 1}, {2, 1}, {1, 2}}) {
    if (ranks > most_ranks) continue;
    const std::string label = threads == 1 ? "one thread" : "two threads";
    const Arguments argument{"--threads=" + std::to_string(threads)};
    all.push_back({label, true, ranks, ours + argument});
    all.push_back({label, false, ranks, peers + argument});
    all.push_back(trainer(label, ranks,
                          {"--config=laptop", "--threads=" + std::to_string(threads),
                           "--max-steps=" + std::to_string(quick ? 101 : 400)}));
  }
  return all;
}

}  // namespace

std::vector<Case> cases(bool gpus, size_t most_ranks, bool quick) {
  return gpus ? on_gpus(most_ranks, quick) : on_cpus(most_ranks, quick);
}

}  // namespace checker::bench
