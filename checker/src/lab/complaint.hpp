#pragma once
#include <functional>

#include "process/descriptor.hpp"

namespace checker {

/// A pipe on which a forked child says what went wrong, if anything did.
class Complaint {
 public:
  /// Throws Error if there are no more descriptors.
  Complaint();

  /// In the child: runs the action and passes on the Error that it throws.
  void guard(const std::function<void()>& action);
  /// In the child: nothing can go wrong any more.
  void nothing() { write_.close(); }
  int descriptor() const { return write_.get(); }

  /// In the parent: waits until the child has said it or ended, and throws it as an Error.
  void await();

 private:
  Descriptor read_, write_;
};

}  // namespace checker
