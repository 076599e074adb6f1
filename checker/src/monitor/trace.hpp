#pragma once
#include <string>

#include "monitor/run.hpp"

namespace checker::monitor {

/// The run as Chrome's trace events in JSON, which Perfetto (ui.perfetto.dev) shows: each rank a
/// process, with what it does, its collectives, and its loss and GPUs as counters. The format:
/// "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
std::string to_trace(const Run& run);

}  // namespace checker::monitor
