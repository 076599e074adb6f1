#include "plan.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "tasks/secret.hpp"
#include "tasks/task.hpp"

namespace replay {

namespace {

// fp64 results of right programs differ by some 1e-15, those of wrong ones by 1e-4 and more.
constexpr double kTolerance = 1e-9;
// Averaging gradients in single precision is as right as in double.
constexpr double kGradientTolerance = 1e-6;
// Adding up some tens of batches in float is as right as in double.
constexpr double kLossTolerance = 1e-5;

std::vector<size_t> numbers_in(const std::string& nodes) {
  std::vector<size_t> numbers;
  std::istringstream stream(nodes);
  for (std::string number; std::getline(stream, number, ',');) {
    numbers.push_back(std::stoul(number));
  }
  return numbers;
}

tasks::Options parsed(const std::vector<std::string>& options) {
  std::vector<std::string> words{"replay"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  return tasks::parse_options(static_cast<int>(pointers.size()), pointers.data());
}

std::vector<at::Tensor> gradients(const tasks::Task& task, tasks::Model& model, size_t from,
                                  size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), from);
  auto dataset = task.dataset("train");
  const auto batch = dataset.get_batch(indices);
  model.zero_grad();
  task.loss(model.forward(batch.input), batch.target).mean().backward();
  std::vector<at::Tensor> all;
  for (const auto& parameter : model.parameters()) all.push_back(parameter.grad().clone());
  return all;
}

// Whether one batch of so many samples more gives the mean of the gradients of its parts, as the
// course's own task does: batches with unequally many targets do not, and no model that looks at
// the batch as a whole.
bool ranks_add_up(const tasks::Task& task, size_t batch_size) {
  const auto model = task.make_model();
  const auto first = gradients(task, *model, 0, batch_size);
  const auto second = gradients(task, *model, batch_size, batch_size);
  const auto whole = gradients(task, *model, 0, 2 * batch_size);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (!at::allclose((first[i] + second[i]) / 2, whole[i], kTolerance, kTolerance)) return false;
  }
  return true;
}

// A configuration that starts from the secret's takes its place.
void settle(std::vector<std::string>& options, const std::vector<std::string>& settings,
            const std::filesystem::path& file) {
  const auto config = std::ranges::find(options, "--config");
  if (config == options.end()) throw tasks::Error("a secret has no --config to start from");
  auto& path = *std::next(config);
  std::ofstream out(file);
  out << "base: " << std::filesystem::relative(path, file.parent_path()).string() << "\n";
  for (const auto& line : settings) out << line << "\n";
  out.close();
  if (!out) throw tasks::Error("cannot write " + file.string());
  path = file.string();
}

}  // namespace

void write_plan(const std::filesystem::path& folder, const Request& request) {
  const auto& task = request.task;
  auto secret = tasks::make_secret(task, request.seed, folder);
  secret.insert(secret.begin(), {"--task", task});
  if (!request.settings.empty()) settle(secret, request.settings, folder / "settings.yaml");
  const auto options = parsed(secret);
  const auto made = tasks::make_task(options);
  const auto batch_size = static_cast<size_t>(options.batch_size);
  auto samples = nlohmann::json::array();
  for (const auto& split : made->splits()) {
    samples.push_back({split, *made->dataset(split).size()});
  }
  auto worlds = nlohmann::json::array();
  for (const auto& world : request.nodes) worlds.push_back(numbers_in(world));
  const nlohmann::json plan = {{"task", task},
                               {"options", secret},
                               {"epochs", options.epochs},
                               {"max_steps", options.max_steps},
                               {"batch_size", options.batch_size},
                               {"samples", samples},
                               {"worlds", worlds},
                               {"ranks_add_up", ranks_add_up(*made, batch_size)},
                               {"tolerance", kTolerance},
                               {"gradient_tolerance", kGradientTolerance},
                               {"loss_tolerance", kLossTolerance}};
  std::ofstream file(folder / "plan.json");
  file << plan.dump(1) << "\n";
  file.close();
  if (!file) throw tasks::Error("cannot write " + (folder / "plan.json").string());
}

}  // namespace replay
