#pragma once
#include <functional>
#include <string>

/// What `call` throws, on all ranks of the world; empty if it throws nothing. Expects that all say
/// the same, word by word.
std::string error_of_all_ranks(const std::function<void()>& call);
