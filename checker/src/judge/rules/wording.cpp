#include "judge/rules/wording.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include "judge/rules/printed.hpp"

namespace checker::rules {

namespace {

// Numbers are told apart by three decimals. Data are new in each judgement, so by chance two
// losses, or a loss and the number of an epoch, may look the same; such a loss tells nothing.
bool unmistakable(double loss, const ExpectedWorld& truth) {
  const auto looks_like_it = [&](double number) { return std::abs(number - loss) < 2e-3; };
  size_t alike = 0;
  for (const auto& other : truth.losses()) alike += looks_like_it(other.value) ? 1 : 0;
  for (size_t epoch = 1; epoch <= truth.training.size(); ++epoch) {
    alike += looks_like_it(static_cast<double>(epoch)) ? 1 : 0;
  }
  return alike == 1;  // itself
}

// The epochs, from 0, whose training loss a line shows.
std::vector<size_t> epochs_in(const std::string& line, const ExpectedWorld& truth) {
  const auto numbers = numbers_in({line});
  std::vector<size_t> epochs;
  for (size_t epoch = 0; epoch < truth.training.size(); ++epoch) {
    const double loss = truth.training[epoch];
    if (shown(numbers, loss) && unmistakable(loss, truth)) epochs.push_back(epoch);
  }
  return epochs;
}

// A line that was never ended has the next one in it, without so much as a blank between.
bool holds_two(const std::string& line) {
  for (const char* begin : {"epoch ", "best validation loss", "test loss"}) {
    const auto at = line.find(begin);
    if (at == std::string::npos || at == 0) continue;
    const auto before = static_cast<unsigned char>(line[at - 1]);
    if (std::isalnum(before) != 0 || before == ')') return true;
  }
  return false;
}

}  // namespace

std::optional<EvidenceLine> wrong_wording(const std::string& line, const ExpectedWorld& truth) {
  if (holds_two(line)) return EvidenceLine{"two_lines", {}};
  const auto epochs = epochs_in(line, truth);
  if (epochs.size() > 1) return EvidenceLine{"several_epochs", {}};
  const auto epoch = number_after(line, "epoch");
  if (epoch && epochs.size() == 1 && *epoch != static_cast<double>(epochs[0] + 1)) {
    return EvidenceLine{"other_epoch", {{"epoch", epochs[0] + 1}}};
  }
  const std::vector<double> test(truth.test ? 1 : 0, truth.test.value_or(0));
  for (const auto& [label, own, other] :
       {std::tuple{"training loss", truth.training, truth.validation},
        std::tuple{"validation loss", truth.validation, truth.training},
        std::tuple{"test loss", test, truth.validation}}) {
    const auto number = number_after(line, label);
    if (!number) continue;
    const auto is = [&](double value) { return shown({*number}, value); };
    if (std::ranges::none_of(own, is) && std::ranges::any_of(other, is)) {
      return EvidenceLine{"other_loss", {{"label", label}}};
    }
  }
  return std::nullopt;
}

}  // namespace checker::rules
