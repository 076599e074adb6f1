#pragma once
/// The signals of a run, which are prepared once on a machine.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "tasks/task.hpp"

namespace tasks::signals {

constexpr int64_t kPad = -1;  ///< the label of a moment that a signal does not have

struct DataOptions {
  int64_t train_signals = 0, evaluation_signals = 0;
  int64_t length = 0;  ///< moments that a signal has at most
  int64_t seed = 0;
  double preparation_seconds = 0;
};

/// The folder of the signals of these options, in the cache; makes it if it is not there. Throws
/// Error where it cannot be written.
std::filesystem::path prepared_signals(const DataOptions& options);

/// Inputs: values [signals, length] of this type, zeros behind a signal's end. Targets: labels,
/// int64 [signals, length], kPad behind it. Throws Error if the folder's files are damaged.
std::shared_ptr<const Dataset::Source> make_source(const std::filesystem::path& folder,
                                                   std::string_view split, torch::Dtype type);

/// The best possible mean loss on a split.
double least_loss_of(const std::filesystem::path& folder, std::string_view split);

}  // namespace tasks::signals
