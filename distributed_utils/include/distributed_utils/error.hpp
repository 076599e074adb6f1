#pragma once
/// Error: the exception that this library throws for mistakes that the caller can fix.
#include <stdexcept>

namespace distributed_utils {

/// what() says what is wrong and how to fix it. Failures inside c10d keep c10's own exceptions.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace distributed_utils
