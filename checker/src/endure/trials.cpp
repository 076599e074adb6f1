#include "endure/trials.hpp"

namespace checker::endure {

Outcome make_trials(const Options& options,
                    const std::function<std::string(size_t number)>& trial) {
  Outcome outcome;
  for (size_t number = 0; number < options.count; ++number) {
    if (auto wrong = trial(number); wrong.empty()) {
      ++outcome.right;
    } else {
      outcome.wrong.push_back(std::move(wrong));
    }
    if (options.on_progress) options.on_progress(outcome.trials());
  }
  return outcome;
}

}  // namespace checker::endure
