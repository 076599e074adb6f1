#pragma once
/// Finds the samples that a loss was computed from. A batch is recognised by its values, in what
/// the model's forward pass received and in the loss's targets.
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "evidence/run.hpp"

namespace checker {

/// Follows one rank's log, in its order.
class SampleFinder {
 public:
  /// Kind::samples: what a dataset gave.
  void gave(const Event& event);
  /// A forward pass, the `number`th of the rank, and the fingerprints of what it received.
  void forward(size_t number, const std::vector<uint64_t>& inputs);
  /// Kind::targets: a loss of these follows.
  void targets(std::vector<uint64_t> fingerprints) { targets_ = std::move(fingerprints); }
  /// Fills in the loss's samples and its forward pass.
  void find(BatchSeen& batch) const;

  /// By split; 0 where nothing was fetched.
  const std::vector<uint64_t>& split_sizes() const { return split_sizes_; }

 private:
  struct Sample {
    Split split = Split::train;
    uint64_t id = 0, target = 0;
  };
  // A forward pass; a sample that nobody fetched is nothing.
  struct Received {
    size_t number = 0;
    std::vector<std::optional<Sample>> samples;
  };

  bool fits(const std::vector<std::optional<Sample>>& samples) const;
  std::vector<std::optional<Sample>> of_last_forwards() const;
  std::vector<std::optional<Sample>> by_target() const;
  static void take(BatchSeen& batch, const std::vector<std::optional<Sample>>& samples);

  std::map<uint64_t, Sample> known_;  // by the input's fingerprint
  std::deque<Received> received_;     // the latest forward passes
  std::vector<uint64_t> targets_;
  std::vector<uint64_t> split_sizes_;
};

}  // namespace checker
