// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace data = torch::data;

// The connection of this process with the others, with plain c10d.
class Ranks {
 public:
  Ranks() : rank(number("RANK", 0)), local_rank(number("LOCAL_RANK", 0)), size(number("WORLD_SIZE", 1)) {
    if (size == 1) return;
    const char* address = std::getenv("MASTER_ADDR");
    const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
    const bool served = agent && std::string(agent) == "True";
    c10d::TCPStoreOptions store_options;
    store_options.port = static_cast<uint16_t>(number("MASTER_PORT", 29500));
    store_options.isServer = rank == 0 && !served;
    auto tcp = c10::make_intrusive<c10d::TCPStore>(address ? address : "127.0.0.1", store_options);
    auto store = c10::make_intrusive<c10d::PrefixStore>("trainer", tcp);
    auto gloo = c10d::ProcessGroupGloo::Options::create();
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, gloo);
    // Everybody there?
    std::vector<at::Tensor> ones = {torch::ones({1})};
    group_->allreduce(ones)->wait();
    if (ones[0].item<float>() != static_cast<float>(size)) throw std::runtime_error("ranks missing");
  }

  const int rank, local_rank, size;

 private:
  static int number(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::stoi(text) : otherwise;
  }
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
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

  const Ranks ranks;
  torch::Device device = torch::kCPU;
  if (options.device) device = *options.device;
  else if (torch::cuda::is_available()) device = torch::Device(torch::kCUDA, ranks.local_rank);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
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
