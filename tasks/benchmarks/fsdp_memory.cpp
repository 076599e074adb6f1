// What a rank's tensors take on the CPU while the language model (configuration deep) takes a step:
// under DistributedDataParallel, under FullyShardedDataParallel as one unit, and block by block.
// Bytes are counted, so they are the same on any machine, but for what Gloo's threads hold a moment
// longer. Prints CSV for slides/data: fsdp_memory [--ranks=N] [--events], where --events prints
// what happens to each unit in rank 0's third step instead.
#include <torch/torch.h>

#include <array>
#include <cstring>
#include <utility>

#include "distributed_utils/distributed_utils.hpp"
#include "distributed_utils/observer.hpp"
#include "instrumentation/memory.hpp"
#include "ranks.hpp"
#include "tasks/options.hpp"
#include "tasks/task.hpp"

namespace {

namespace du = distributed_utils;
namespace memory = instrumentation::memory;

constexpr int kStep = 2;  // from 0: by then the optimizer has its state, and the order is known

/// Writes down what happens, with the bytes that tensors take then.
class Diary : public du::Observer {
 public:
  struct Line {
    std::string what, unit;
    uint64_t bytes;
  };

  std::function<BackendPtr(BackendPtr)> wrap_backends(const du::GroupDescription&) override {
    return [](BackendPtr backend) { return backend; };
  }
  void unit_event(const std::string& unit, du::UnitEvent event) override {
    static constexpr std::array words{"gather", "gathered", "freed", "reduce", "reduced"};
    note(words.at(static_cast<size_t>(event)), unit);
  }
  void note(const std::string& what, const std::string& unit = "") {
    const auto counted = memory::look();
    most = std::max(most, counted.most);
    if (writes) lines.push_back({what, unit, counted.live});
  }

  bool writes = false;
  uint64_t most = 0;
  std::vector<Line> lines;
};

Diary& diary() {
  static auto* const instance = new Diary;  // leaked: groups call it until the very end
  return *instance;
}

struct Taken {
  uint64_t between = 0, most = 0;  // beside what was there before the model
};

class Training {
 public:
  Training(const tasks::Options& options, const du::World& world)
      : options_(options), world_(world), task_(tasks::make_task(options)) {}

  /// wrap: makes a wrapper of a module.
  Taken run(const auto& wrap) const {
    const uint64_t before = memory::look().live;
    const auto module = task_->make_model();
    const auto model = wrap(module);
    const auto optimizer = task_->make_optimizer(model->parameters());
    auto data = task_->dataset("train");
    Taken taken;
    for (int step = 0; step <= kStep; ++step) {
      diary().writes = step == kStep;
      diary().note("step begins");
      diary().most = 0;
      optimizer->zero_grad();
      const auto batch = batch_of(data, step);
      const auto loss = task_->loss(model->forward(batch.input), batch.target);
      diary().note("forward ends");
      loss.mean().backward();
      diary().note("backward ends");
      optimizer->step();
      diary().note("step ends");
      diary().writes = false;
      taken = {.between = memory::look().live - before, .most = diary().most - before};
    }
    return taken;
  }

 private:
  tasks::Batch batch_of(tasks::Dataset& data, int step) const {
    const auto own = static_cast<size_t>(options_.batch_size);
    std::vector<size_t> indices(own);
    for (size_t i = 0; i < own; ++i) {
      indices[i] =
          ((static_cast<size_t>(step) * world_.world_size + world_.rank) * own + i) % *data.size();
    }
    return data.get_batch(indices);
  }

  const tasks::Options& options_;
  const du::World& world_;
  std::shared_ptr<tasks::Task> task_;
};

auto in_one_unit(const std::shared_ptr<tasks::Model>& module) {
  return du::FullyShardedDataParallel(module);
}

auto by_block(const std::shared_ptr<tasks::Model>& module) {
  return du::FullyShardedDataParallel(module, {.units = module->blocks()});
}

void print_memory(const Training& training) {
  const auto print = [](const char* way, const Taken& taken) {
    const auto all = du::all_gather(torch::tensor(
        {static_cast<int64_t>(taken.between), static_cast<int64_t>(taken.most)}, torch::kLong));
    for (int64_t rank = 0; rank < all.numel() / 2; ++rank) {
      const auto own = all.view({-1, 2})[rank];
      du::print0("{},{},{},{},{}", du::get_world_size(), way, rank, own[0].item<int64_t>(),
                 own[1].item<int64_t>());
    }
  };
  du::print0("ranks,way,rank,between_steps,most");
  print("DistributedDataParallel",
        training.run([](const auto& module) { return du::DistributedDataParallel(module); }));
  print("one unit", training.run(in_one_unit));
  print("block by block", training.run(by_block));
}

void print_events(const Training& training) {
  training.run(by_block);
  du::print0("event,unit,bytes");
  for (const auto& [what, unit, bytes] : diary().lines) du::print0("{},{},{}", what, unit, bytes);
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<char*> words(argv, argv + argc);
  words.push_back(nullptr);
  const auto setting = ranks::take_setting(argc, argv, 4);
  if (const int code = ranks::start(setting.ranks, words.data()); code >= 0) return code;
  const bool events = argc > 1 && std::strcmp(argv[1], "--events") == 0;
  std::array own{"fsdp_memory", "--config", "deep", "--device", "cpu", "--threads", "1"};
  const auto options = tasks::parse_options(own.size(), const_cast<char**>(own.data()));
  tasks::apply(options);
  memory::count();
  du::observe([]() -> du::Observer* { return &diary(); });
  const auto world = du::setup({.device = options.device});
  {
    const Training training(options, world);
    events ? print_events(training) : print_memory(training);
  }
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
