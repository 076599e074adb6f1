#pragma once
#include <functional>
#include <string>

#include "endure/endure.hpp"

namespace checker::endure {

/// Makes options.count trials, numbered from 0; each says what went wrong, or nothing.
Outcome make_trials(const Options& options, const std::function<std::string(size_t number)>& trial);

}  // namespace checker::endure
