#pragma once
#include <stdexcept>

namespace checker {

/// Something the user can fix: what() says what is wrong, where, and how to fix it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A wrong command line; main() adds how to get help.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace checker
