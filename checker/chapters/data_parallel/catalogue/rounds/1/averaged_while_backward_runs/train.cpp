// Step 04: The ranks train one model.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What DistributedDataParallel does, in small: sends each gradient as soon as it is there.
class Averager {
 public:
  explicit Averager(const torch::nn::Module& model)
      : group_(world_group()), parameters_(model.parameters()), buffers_(model.buffers()) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters_) broadcast(parameter, 0);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].requires_grad()) continue;
      parameters_[i].register_hook([this, i](const torch::Tensor& gradient) { send(i, gradient); });
    }
  }
  Averager(const Averager&) = delete;
  Averager& operator=(const Averager&) = delete;

  // To be called before forward(): running statistics are rank 0's.
  void begin() {
    const torch::NoGradGuard no_grad;
    for (auto& buffer : buffers_) broadcast(buffer, 0);
  }

  // To be called after backward(): the gradients become those of all ranks.
  void finish() {
    for (auto& [index, message, work] : sent_) {
      work->wait();
      auto& parameter = parameters_[index];
      parameter.mutable_grad() = message.front().div_(group_->getSize());
    }
    sent_.clear();
  }

 private:
  struct Sent {
    size_t index;
    std::vector<at::Tensor> message;
    c10::intrusive_ptr<c10d::Work> work;
  };

  void send(size_t index, const torch::Tensor& gradient) {
    std::vector<at::Tensor> message = {gradient.detach().clone(at::MemoryFormat::Contiguous)};
    auto work = group_->allreduce(message, {.reduceOp = c10d::ReduceOp::SUM});
    sent_.push_back({index, std::move(message), std::move(work)});
  }

  Group group_;
  std::vector<torch::Tensor> parameters_, buffers_;
  std::vector<Sent> sent_;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, Averager& averager,
                       auto& optimizer, const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  averager.begin();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  averager.finish();
  optimizer.step();
  return loss;
}

tasks::Score train(const tasks::Task& task, auto& model, Averager& averager, auto& loader,
                   auto& optimizer, tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, averager, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  Averager averager(*model);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, averager, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
