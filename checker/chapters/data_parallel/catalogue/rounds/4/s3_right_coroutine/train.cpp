// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <coroutine>
#include <exception>
#include <utility>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// What Python calls a generator.
template <class T>
class Generator {
 public:
  struct promise_type {
    const T* value = nullptr;
    std::exception_ptr error;

    Generator get_return_object() {
      return Generator(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const T& next) noexcept {
      value = &next;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Generator(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Generator(Generator&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Generator& operator=(Generator&&) = delete;
  ~Generator() {
    if (handle_) handle_.destroy();
  }

  // nullptr at the end.
  const T* next() {
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return handle_.done() ? nullptr : handle_.promise().value;
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

enum class Tail { keep, drop };

// One pass over this rank's share.
Generator<tasks::Batch> batches(tasks::Dataset set, DistributedSampler& sampler,
                                size_t batch_size, Tail tail) {
  sampler.reset();
  while (const auto indices = sampler.next(batch_size)) {
    if (tail == Tail::drop && indices->size() < batch_size) break;
    const tasks::Batch batch = set.get_batch(*indices);
    co_yield batch;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});
  const auto batch_size = static_cast<size_t>(options.batch_size);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(device);
    return task->loss(model->forward(input), target);
  };
  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(device);
    auto stream = batches(train_set, train_sampler, batch_size, Tail::drop);
    while (const auto* batch = stream.next()) {
      optimizer->zero_grad();
      const auto loss = loss_of(*batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    return task->score(totals);
  };
  const auto evaluate = [&](const tasks::Dataset& set, DistributedSampler& sampler) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    auto stream = batches(set, sampler, batch_size, Tail::keep);
    while (const auto* batch = stream.next()) totals += loss_of(*batch).totals();
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train();
    const auto valid = evaluate(valid_set, valid_sampler);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_set, test_sampler);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
