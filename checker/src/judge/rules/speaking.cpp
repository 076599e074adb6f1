#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// Every number in some lines of text.
std::vector<double> numbers_in(const std::vector<std::string>& lines) {
  std::vector<double> numbers;
  for (const auto& line : lines) {
    const char* at = line.c_str();
    while (*at) {
      char* end = nullptr;
      const double value = std::strtod(at, &end);
      if (end == at) {
        ++at;
      } else {
        numbers.push_back(value);
        at = end;
      }
    }
  }
  return numbers;
}

// Three decimals are enough to recognise a loss that is printed.
bool shown(const std::vector<double>& numbers, double wanted) {
  return std::ranges::any_of(numbers,
                             [&](double value) { return std::abs(value - wanted) < 6e-4; });
}

std::vector<size_t> speakers(const Scene& scene) {
  std::vector<size_t> ranks;
  for (size_t rank = 1; rank < scene.world(); ++rank) {
    if (!scene.run().ranks[rank].output.empty()) ranks.push_back(rank);
  }
  return ranks;
}

std::string why_of(const Scene& scene, const std::vector<size_t>& ranks) {
  const bool by_node = scene.world() == 3 && ranks == std::vector<size_t>{2};
  if (by_node) {
    return "Rank 2 is the first of the second node: its local rank is 0, its rank is not. Rank 0 "
           "is "
           "there once in the whole world.";
  }
  return "print0 prints on rank 0 and does nothing on the others. All ranks know the same numbers: "
         "once is enough.";
}

}  // namespace

void speaking(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::print0) || scene.run().ranks.empty()) return;
  const auto ranks = speakers(scene);
  const int todo = scene.blame({feature::print0});
  if (!ranks.empty()) {
    std::vector<std::string> evidence;
    for (const size_t rank : ranks) {
      evidence.push_back("rank " + std::to_string(rank) + " printed \"" +
                         scene.run().ranks[rank].output.front().substr(0, 70) + "\", " +
                         scene.where());
    }
    const bool silent = scene.run().ranks[0].output.empty();
    findings.push_back({todo, silent ? "wrong_rank_prints" : "other_ranks_print",
                        silent ? "Another rank prints in place of rank 0."
                               : "Not only rank 0 prints: " + ranks_in_words(ranks) +
                                     (ranks.size() > 1 ? " do as well." : " does as well."),
                        why_of(scene, ranks), evidence, ""});
    return;
  }
  if (!scene.ended_well()) return;
  const auto numbers = numbers_in(scene.run().ranks[0].output);
  std::vector<std::string> missing;
  const auto want = [&](const std::string& name, double value) {
    if (!shown(numbers, value)) missing.push_back(name + ", " + digits(value));
  };
  for (size_t epoch = 0; epoch < scene.truth.validation.size(); ++epoch) {
    const auto of = " of epoch " + std::to_string(epoch + 1);
    if (epoch < scene.truth.training.size())
      want("training loss" + of, scene.truth.training[epoch]);
    want("validation loss" + of, scene.truth.validation[epoch]);
  }
  if (scene.truth.test) want("test loss", *scene.truth.test);
  if (missing.empty()) return;
  findings.push_back(
      {todo,
       scene.run().ranks[0].output.empty() ? "nobody_prints" : "not_all_printed",
       scene.run().ranks[0].output.empty() ? "Nobody prints anything."
                                           : "Rank 0 does not print all that there is to say.",
       "Every line that the program printed as given is to be printed once, by rank 0.",
       {scene.where() + ", not on rank 0's standard output: " + missing.front() +
        (missing.size() > 1 ? ", and " + std::to_string(missing.size() - 1) + " more" : "")},
       ""});
}

}  // namespace checker::rules
