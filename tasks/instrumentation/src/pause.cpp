#include "instrumentation/pause.hpp"

#include <atomic>

namespace instrumentation {
namespace {

std::atomic<int> living{0};

}  // namespace

Pause::Pause() { ++living; }

Pause::~Pause() { --living; }

bool Pause::lives() { return living.load(std::memory_order_relaxed) > 0; }

}  // namespace instrumentation
