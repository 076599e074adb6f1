#pragma once
/// What an error of the user's says.
#include <gmock/gmock.h>

#include <string>

#include "tasks/options.hpp"

namespace tasks {

/// The text of the Error that `action` throws; empty, and a failed test, if it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no tasks::Error was thrown";
  return {};
}

}  // namespace tasks
