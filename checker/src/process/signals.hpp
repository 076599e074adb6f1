#pragma once
#include <csignal>
#include <functional>

#include "process/descriptor.hpp"

namespace checker {

/// While it lives, the end of a child, and SIGINT, SIGTERM and SIGHUP to us, arrive as readable
/// events instead of interrupting; SIGPIPE is ignored.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// Calls back for every signal that came.
  void read(const std::function<void(int signal)>& on_signal) const;

 private:
  Descriptor descriptor_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
};

}  // namespace checker
