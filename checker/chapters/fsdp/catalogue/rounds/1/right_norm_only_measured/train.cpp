// With a look at the norm of the gradient: clip_grad_norm_ with a bound that nothing reaches only
// measures.
#include <torch/torch.h>

#include <cstdio>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

constexpr double kNever = 1e12;

struct Norms {
  double largest = 0;
  int steps = 0;
  void add(const torch::Tensor& norm) {
    largest = std::max(largest, norm.item<double>());
    ++steps;
  }
};

template <typename Model, typename Loader>
tasks::Score training_epoch(const tasks::Task& task, Model& fsdp, Loader& loader,
                            torch::optim::Optimizer& opt, tasks::Schedule& lr, torch::Device dev,
                            tasks::Progress& prog) {
  Norms norms;
  fsdp->train();
  torch::Tensor acc = task.no_totals(dev);
  for (auto& b : loader) {
    auto l = prog.take_step(b, [&](const tasks::Batch& cpu) {
      tasks::Batch gpu = cpu.to(dev);
      fsdp->zero_grad();
      torch::Tensor out = fsdp->forward(gpu.input);
      tasks::Loss loss = task.loss(out, gpu.target);
      loss.mean().backward();
      norms.add(fsdp->clip_grad_norm_(kNever));
      opt.step();
      return loss;
    });
    lr.step();
    acc += l.totals();
    if (!prog.step(l)) break;
  }
  all_reduce(acc);
  if (get_rank() == 0) {
    std::fprintf(stderr, "largest gradient norm in %d steps: %g\n", norms.steps, norms.largest);
  }
  return task.score(acc);
}

template <typename Model, typename Loader>
torch::Tensor sums_over(const tasks::Task& task, Model& fsdp, Loader& loader, torch::Device dev) {
  torch::Tensor acc = task.no_totals(dev);
  for (auto& b : loader) {
    tasks::Batch gpu = b.to(dev);
    acc += task.loss(fsdp->forward(gpu.input), gpu.target).totals();
  }
  return acc;
}

template <typename Model, typename Loader>
tasks::Score evaluation(const tasks::Task& task, Model& fsdp, Loader& loader, torch::Device dev) {
  torch::Tensor acc;
  fsdp->eval();
  {
    torch::AutoGradMode no_grad(false);
    auto keep = fsdp->summon_full_params();
    acc = sums_over(task, fsdp, loader, dev);
  }
  all_reduce(acc);
  return task.score(acc);
}

int main(int argc, char** argv) try {
  tasks::Options opt = tasks::parse_options(argc, argv);
  tasks::apply(opt);
  World world = setup({.backend = opt.backend, .device = opt.device});
  torch::Device dev = world.device;
  auto task = tasks::make_task(opt);

  auto ds_train = task->dataset("train");
  auto ds_valid = task->dataset("validation");
  auto ds_test = task->dataset("test");
  DistributedSamplerOptions for_training{.shuffle = true, .seed = opt.seed, .drop_last = true};
  DistributedSamplerOptions for_scores{.shuffle = false, .pad = false};
  DistributedSampler s_train(*ds_train.size(), for_training);
  DistributedSampler s_valid(*ds_valid.size(), for_scores);
  DistributedSampler s_test(*ds_test.size(), for_scores);
  data::DataLoaderOptions batching(opt.batch_size);
  auto valid = data::make_data_loader(ds_valid, s_valid, batching);
  auto test = data::make_data_loader(ds_test, s_test, batching);
  auto training = data::make_data_loader(ds_train, s_train, batching.drop_last(true));

  auto net = task->make_model();
  net->to(dev);
  std::vector<std::shared_ptr<Block>> layers = net->blocks();
  FullyShardedDataParallel fsdp(net, FullyShardedDataParallelOptions{.units = layers});
  auto adamw = task->make_optimizer(fsdp->parameters());

  tasks::Progress prog(opt, *ds_train.size());
  auto lr = task->make_schedule(*adamw, prog.total_steps());
  tasks::Score best;
  for (int64_t ep = 0; ep < opt.epochs && !prog.finished(); ++ep) {
    s_train.set_epoch(ep);
    auto tr = training_epoch(*task, fsdp, *training, *adamw, *lr, dev, prog);
    auto va = evaluation(*task, fsdp, *valid, dev);
    prog.report(tr, va);
    print0("epoch {}/{}: training loss {}, validation loss {}", ep + 1, opt.epochs,
           task->format(tr), task->format(va));
    if (va < best) {
      best = va;
      save0(*fsdp, opt.output / "model-best.safetensors");
    }
  }
  auto te = evaluation(*task, fsdp, *test, dev);
  prog.report(te);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(te));
  save0(*fsdp, opt.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& e) {
  return tasks::report(e);
}
