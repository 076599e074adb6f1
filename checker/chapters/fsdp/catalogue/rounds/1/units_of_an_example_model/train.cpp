// The units are planned before the model exists, in a function of their own.
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
namespace data = torch::data;

FullyShardedDataParallelOptions plan(const tasks::Task& task) {
  // All models of a task have the same layers.
  const auto example = task.make_model();
  FullyShardedDataParallelOptions options;
  options.units = example->blocks();
  return options;
}

auto build(const tasks::Task& task, torch::Device device) {
  const auto options = plan(task);
  auto model = task.make_model();
  model->to(device);
  return FullyShardedDataParallel(model, options);
}

tasks::Loss step(const tasks::Task& t, auto& m, auto& o, const tasks::Batch& b, torch::Device d) {
  const auto [in, out] = b.to(d);
  o.zero_grad();
  const auto l = t.loss(m->forward(in), out);
  l.mean().backward();
  o.step();
  return l;
}

tasks::Score pass(const tasks::Task& t, auto& m, auto& loader, torch::Device d) {
  const torch::NoGradGuard guard;
  m->eval();
  const auto params = m->summon_full_params();
  auto s = t.no_totals(d);
  for (auto& b : loader) {
    const auto [in, out] = b.to(d);
    s += t.loss(m->forward(in), out).totals();
  }
  all_reduce(s, ReduceOp::SUM);
  return t.score(s);
}

int main(int argc, char** argv) try {
  const auto opts = tasks::parse_options(argc, argv);
  tasks::apply(opts);
  const auto dev = setup({.backend = opts.backend, .device = opts.device}).device;
  const auto t = tasks::make_task(opts);
  const auto d1 = t->dataset("train");
  const auto d2 = t->dataset("validation");
  const auto d3 = t->dataset("test");
  DistributedSampler s1(*d1.size(), {.shuffle = true, .seed = opts.seed, .drop_last = true});
  DistributedSampler s2(*d2.size(), {.shuffle = false, .pad = false});
  DistributedSampler s3(*d3.size(), {.shuffle = false, .pad = false});
  auto l1 =
      data::make_data_loader(d1, s1, data::DataLoaderOptions(opts.batch_size).drop_last(true));
  auto l2 = data::make_data_loader(d2, s2, data::DataLoaderOptions(opts.batch_size));
  auto l3 = data::make_data_loader(d3, s3, data::DataLoaderOptions(opts.batch_size));

  const auto m = build(*t, dev);
  const auto o = t->make_optimizer(m->parameters());
  tasks::Progress p(opts, *d1.size());
  const auto rates = t->make_schedule(*o, p.total_steps());
  tasks::Score best;
  for (int64_t e = 0; e < opts.epochs && !p.finished(); ++e) {
    s1.set_epoch(e);
    m->train();
    auto s = t->no_totals(dev);
    for (auto& b : *l1) {
      const auto l =
          p.take_step(b, [&](const tasks::Batch& x) { return step(*t, m, *o, x, dev); });
      rates->step();
      s += l.totals();
      if (!p.step(l)) break;
    }
    all_reduce(s, ReduceOp::SUM);
    const auto a = t->score(s);
    const auto v = pass(*t, m, *l2, dev);
    p.report(a, v);
    print0("epoch {}/{}: training loss {}, validation loss {}", e + 1, opts.epochs, t->format(a),
           t->format(v));
    if (v < best) {
      best = v;
      save0(*m, opts.output / "model-best.safetensors");
    }
  }
  const auto v = pass(*t, m, *l3, dev);
  p.report(v);
  print0("best validation loss: {}", t->describe(best));
  print0("test loss: {}", t->describe(v));
  save0(*m, opts.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}
