#pragma once
/// NoSync: the object that no_sync() of a wrapped model returns, for gradient accumulation without
/// communication.
#include <utility>

namespace distributed_utils {

/// While it lives, backward() does not communicate.
class NoSync {
 public:
  explicit NoSync(bool& flag) : flag_(flag), before_(std::exchange(flag, false)) {}
  ~NoSync() { flag_ = before_; }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  bool& flag_;
  bool before_;
};

}  // namespace distributed_utils
