#include <fmt/format.h>
#include <torch/torch.h>

#include <optional>

#include "tasks/checkpointing.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// A task and its splits, made together: one rank of each node first.
struct Workload {
  std::shared_ptr<tasks::Task> task;
  tasks::Dataset train, validation, test;

  explicit Workload(const tasks::Options& options)
      : task(tasks::make_task(options)),
        train(task->dataset("train")),
        validation(task->dataset("validation")),
        test(task->dataset("test")) {}
};

// Batches of a split without a loader.
std::optional<std::vector<size_t>> next_whole(DistributedSampler& sampler, size_t size) {
  auto indices = sampler.next(size);
  if (indices && indices->size() < size) return std::nullopt;
  return indices;
}

class Training {
 public:
  Training(const tasks::Options& options, const World& world, Workload& workload)
      : options_(options),
        world_(world),
        work_(workload),
        sampler_(*workload.train.size(), {.seed = options.seed, .drop_last = true}),
        module_(workload.task->make_model()),
        checkpoints_(options),
        progress_(options, *workload.train.size()) {
    module_->to(world.device);
  }

  void run() {
    DistributedDataParallel model(module_, {.bucket_indices = checkpoints_.bucket_indices()});
    const auto optimizer = work_.task->make_optimizer(
        model->parameters(), {.learning_rate_factor = std::sqrt(double(world_.world_size))});
    const auto schedule = work_.task->make_schedule(*optimizer, progress_.total_steps());
    tasks::Score best;
    auto epoch = checkpoints_.restore(*model, *optimizer, *schedule, sampler_, progress_, best);
    for (; epoch < options_.epochs && !progress_.finished(); ++epoch) {
      const auto trained = train(model, *optimizer, *schedule, epoch);
      synchronize_buffers(*model);
      const auto valid = evaluate(model, work_.validation);
      progress_.report(trained, valid);
      print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options_.epochs,
             work_.task->format(trained), work_.task->format(valid));
      if (valid < best) {
        best = valid;
        save0(*model, options_.output / "model-best.safetensors");
      }
    }
    const auto test = evaluate(model, work_.test);
    progress_.report(test);
    print0("best validation loss: {}", work_.task->describe(best));
    print0("test loss: {}", work_.task->describe(test));
    save0(*model, options_.output / "model-final.safetensors");
  }

 private:
  tasks::Score train(auto& model, auto& optimizer, auto& schedule, int64_t epoch) {
    sampler_.set_epoch(epoch);
    sampler_.reset();
    model->train();
    auto totals = checkpoints_.begin_epoch(work_.task->no_totals(world_.device));
    while (const auto indices = next_whole(sampler_, size_t(options_.batch_size))) {
      const auto loss = step(model, optimizer, *indices, totals);
      schedule.step();
      if (!progress_.step(loss)) break;
      checkpoints_.step(totals);
    }
    all_reduce(totals, ReduceOp::SUM);
    return work_.task->score(totals);
  }

  // Halves of the batch, of which only one is in memory at a time. What the step divides by is the
  // number of targets of both, averaged over ranks, and gradients travel with the second half.
  tasks::Loss step(auto& model, auto& optimizer, const std::vector<size_t>& indices,
                   torch::Tensor& totals) {
    const c10::ArrayRef<size_t> all(indices);
    const auto middle = all.size() / 2;
    std::vector<tasks::Batch> parts;
    if (middle > 0) parts.push_back(work_.train.get_batch(all.slice(0, middle)));
    parts.push_back(work_.train.get_batch(all.slice(middle)));
    double count = 0;
    for (const auto& part : parts) count += double(part.target.count());
    const auto divisor = torch::full({}, count, torch::dtype(torch::kDouble).device(world_.device));
    all_reduce(divisor, ReduceOp::AVG);

    optimizer.zero_grad();
    tasks::Loss whole{torch::zeros({}, world_.device), 0, {}};
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto local = model->no_sync();
      add(whole, backward(model, parts[i], divisor, totals));
    }
    add(whole, backward(model, parts.back(), divisor, totals));
    optimizer.step();
    return whole;
  }

  tasks::Loss backward(auto& model, const tasks::Batch& part, const torch::Tensor& divisor,
                       torch::Tensor& totals) {
    const auto [input, target] = part.to(world_.device);
    auto loss = work_.task->loss(model->forward(input), target);
    (loss.sum / divisor).backward();
    totals += loss.totals();
    return loss;
  }

  static void add(tasks::Loss& whole, const tasks::Loss& part) {
    whole.sum = whole.sum + part.sum.detach();
    whole.count += part.count;
    whole.metrics = part.metrics;  // Training does not measure: these are zeros.
  }

  tasks::Score evaluate(auto& model, tasks::Dataset& set) {
    const torch::NoGradGuard no_grad;
    model->eval();
    DistributedSampler sampler(*set.size(), {.shuffle = false, .pad = false});
    sampler.reset();
    auto totals = work_.task->no_totals(world_.device);
    while (const auto indices = sampler.next(size_t(options_.batch_size))) {
      const auto [input, target] = set.get_batch(*indices).to(world_.device);
      totals += work_.task->loss(model->forward(input), target).totals();
    }
    all_reduce(totals, ReduceOp::SUM);
    return work_.task->score(totals);
  }

  const tasks::Options& options_;
  const World& world_;
  Workload& work_;
  DistributedSampler sampler_;
  std::shared_ptr<tasks::Model> module_;
  tasks::Checkpointing checkpoints_;
  tasks::Progress progress_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv, {.checkpoints = true});
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});
  {
    auto workload = rank0_first([&] { return Workload(options); });
    Training training(options, world, workload);
    training.run();
  }
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
