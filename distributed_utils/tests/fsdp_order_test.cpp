// When units are gathered, freed and reduced, and what memory that leaves.
#include <c10/core/impl/alloc_cpu.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "distributed_utils/fsdp.hpp"
#include "distributed_utils/observer.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using testing::ElementsAre;
using torch::Tensor;

/// Writes down what happens to units.
class Diary : public Observer {
 public:
  std::function<BackendPtr(BackendPtr)> wrap_backends(const GroupDescription&) override {
    return [](BackendPtr backend) { return backend; };
  }
  void unit_event(const std::string& unit, UnitEvent event) override {
    static const char* const words[] = {"gather", "have", "free", "reduce", "done"};
    lines.push_back(std::string(words[static_cast<int>(event)]) + " " + unit);
  }
  std::vector<std::string> lines;
};

Diary& diary() {
  static Diary one;
  return one;
}
Observer* find_diary() { return &diary(); }

/// What a step writes there.
std::vector<std::string> lines_of_step(const World& world, FullyShardedDataParallelOptions options,
                                       const NetShape& shape = {}) {
  const auto net = make_net(shape);
  options.units = net->units;
  const auto model = FullyShardedDataParallel(net, options);
  diary().lines.clear();
  // Inputs that want gradients make the first unit like all others.
  const auto rows = own_rows(0, world.rank, world.world_size).requires_grad_(shape.twice);
  loss_of(model->forward(rows)).backward();
  auto lines = std::move(diary().lines);
  std::erase_if(lines, [](const std::string& line) { return line.ends_with("(the rest)"); });
  return lines;
}

TEST(FsdpOrder, TheNextUnitIsGatheredWhileThisOneComputes) {
  ranks::run(2, [] {
    observe(find_diary);
    const World world = setup();
    EXPECT_THAT(
        lines_of_step(world, {}),
        ElementsAre("gather first", "gather layer0", "have first", "free first",  //
                    "gather layer1", "have layer0", "free layer0",                //
                    "gather layer2", "have layer1", "free layer1",                //
                    "gather head", "have layer2", "free layer2", "have head",     // and it stays
                    "gather layer2", "free head", "reduce head",                  //
                    "gather layer1", "have layer2", "free layer2", "done head", "reduce layer2",
                    "gather layer0", "have layer1", "free layer1", "done layer2", "reduce layer1",
                    "gather first", "have layer0", "free layer0", "done layer1", "reduce layer0",
                    "have first", "free first", "done layer0", "reduce first", "done first"));
    observe(nullptr);
  });
}

TEST(FsdpOrder, WithoutPrefetchAUnitIsGatheredWhenItIsWanted) {
  ranks::run(2, [] {
    observe(find_diary);
    const World world = setup();
    const auto lines = lines_of_step(world, {.forward_prefetch = 0, .backward_prefetch = 0});
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (!lines[i].starts_with("gather ")) continue;
      EXPECT_EQ(lines[i + 1], "have" + lines[i].substr(6));
    }
    observe(nullptr);
  });
}

TEST(FsdpOrder, UnitsThatAreNotFreedAreGatheredOnce) {
  ranks::run(2, [] {
    observe(find_diary);
    const World world = setup();
    const auto lines = lines_of_step(world, {.reshard_after_forward = false});
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "gather layer1"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "free layer1"), 1);
    observe(nullptr);
  });
}

TEST(FsdpOrder, AUnitThatIsCalledTwiceIsReducedOnce) {
  ranks::run(2, [] {
    observe(find_diary);
    const World world = setup();
    const auto lines = lines_of_step(world, {}, {.twice = true});
    std::vector<std::string> reduced;
    for (const auto& line : lines) {
      if (line.starts_with("reduce ")) reduced.push_back(line.substr(7));
    }
    EXPECT_THAT(reduced, ElementsAre("head", "layer2", "layer1", "layer0", "first"));
    observe(nullptr);
  });
}

TEST(FsdpOrder, AFrozenUnitIsFreedWhenBackwardHasPassedIt) {
  ranks::run(2, [] {
    observe(find_diary);
    const World world = setup();
    const auto lines = lines_of_step(world, {}, {.frozen = true});
    const auto last = [&](const char* line) {
      return std::find(lines.rbegin(), lines.rend(), line) - lines.rbegin();
    };
    EXPECT_GT(last("free layer1"), last("free layer0"));  // counted from the end
    EXPECT_GT(last("free layer2"), last("free layer1"));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "reduce layer1"), 0);
    observe(nullptr);
  });
}

/// Counts the live bytes of tensors.
struct Meter : c10::Allocator {
  static constexpr size_t kHead = 64;
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    auto* block = static_cast<char*>(c10::alloc_cpu(bytes + kHead));
    *reinterpret_cast<size_t*>(block) = bytes;
    live += static_cast<int64_t>(bytes);
    return {block + kHead, block + kHead, &release, c10::Device(c10::kCPU)};
  }
  static void release(void* data) {
    if (data == nullptr) return;
    char* const block = static_cast<char*>(data) - kHead;
    live -= static_cast<int64_t>(*reinterpret_cast<size_t*>(block));
    c10::free_cpu(block);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  static inline std::atomic<int64_t> live = 0;
};

TEST(FsdpOrder, BetweenStepsARankHoldsItsShareAndNoMore) {
  ranks::run(3, [] {
    static Meter meter;
    c10::SetAllocator(c10::kCPU, &meter, /*priority=*/10);
    const World world = setup();
    const NetShape shape = {.hidden = 27001};
    int64_t expected = 3 * sizeof(double);  // the buffer
    {
      const auto whole = make_net(shape);
      for (const auto& parameter : whole->parameters()) {
        const int64_t rows = parameter.size(0), row = parameter.numel() / rows;
        const int64_t each = (rows + 2) / 3;
        const int64_t own = std::max<int64_t>(0, std::min(each, rows - each * world.rank));
        // The shard, padded for collectives, and what AdamW keeps of it.
        expected += (each + 2 * own) * row * static_cast<int64_t>(sizeof(double));
      }
    }
    const int64_t before = Meter::live;
    const auto net = make_net(shape);
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    torch::optim::AdamW optimizer(model->parameters());
    for (int step = 0; step < 2; ++step) {
      loss_of(model->forward(own_rows(step, world.rank, 3))).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
    // Gloo's threads let go of the last message a little after it was waited for.
    for (int i = 0; i < 1000 && Meter::live - before != expected; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(Meter::live - before, expected);
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
