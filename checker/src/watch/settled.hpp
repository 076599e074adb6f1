#pragma once
#include "state/step_files.hpp"

namespace checker {

/// Tells when files have been saved. By their texts, not by their times: those of a network mount
/// come late and coarse. An editor that is still writing is not disturbed: a text counts once it
/// has stood still from one look to the next, and a file that is just not there is waited for.
class SettledFiles {
 public:
  explicit SettledFiles(Fingerprints now) : settled_(std::move(now)) {}

  /// Takes what is there now. True if that is a new text which stood still.
  bool look(const Fingerprints& now);
  const Fingerprints& texts() const { return settled_; }

 private:
  Fingerprints settled_, last_;
};

}  // namespace checker
