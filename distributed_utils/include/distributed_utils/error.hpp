#pragma once
#include <stdexcept>

namespace distributed_utils {

/// What this library throws where the caller can mend something: what() says what is wrong and how.
/// Failures inside c10d keep c10's own exceptions.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace distributed_utils
