#include "monitor/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

constexpr std::array<const char*, 6> kTraceNames{"data",      "forward",    "backward",
                                                 "optimizer", "evaluation", "checkpoint"};

// Events of one rank. Its threads: 0 what it does, from 1 on its collectives.
class RankTrace {
 public:
  RankTrace(std::string& json, uint32_t rank) : json_(json), rank_(std::to_string(rank)) {}

  void name(const std::string& kind, size_t thread, const std::string& text) {
    add("{\"ph\":\"M\",\"name\":\"" + kind + "\",\"pid\":" + rank_ +
        ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":\"" + text + "\"}}");
  }
  void span(const std::string& text, size_t thread, double begin, double end,
            const std::string& arguments) {
    add("{\"ph\":\"X\",\"name\":\"" + text + "\",\"pid\":" + rank_ +
        ",\"tid\":" + std::to_string(thread) + ",\"ts\":" + fixed(begin * 1e6, 3) +
        ",\"dur\":" + fixed((end - begin) * 1e6, 3) + ",\"args\":{" + arguments + "}}");
  }
  void counter(const std::string& text, double time, double value) {
    if (!std::isfinite(value)) return;
    add("{\"ph\":\"C\",\"name\":\"" + text + "\",\"pid\":" + rank_ +
        ",\"ts\":" + fixed(time * 1e6, 3) + ",\"args\":{\"value\":" + compact(value) + "}}");
  }

 private:
  void add(const std::string& event) {
    if (json_.back() != '[') json_ += ",\n";
    json_ += event;
  }

  std::string& json_;
  std::string rank_;
};

// Spans of one thread must lie within each other, and collectives overlap: each goes to the first
// thread that is free.
void add_collectives(const RankRecord& record, RankTrace& trace) {
  std::vector<Collective> calls(record.collectives);
  std::ranges::sort(calls, {}, &Collective::begin);
  std::vector<double> free_from;
  for (const auto& call : calls) {
    auto lane = std::ranges::find_if(free_from, [&](double end) { return end <= call.begin; });
    if (lane == free_from.end()) {
      trace.name("thread_name", 1 + free_from.size(), "collectives");
      lane = free_from.insert(free_from.end(), 0.0);
    }
    *lane = call.end;
    const auto group = record.groups.find(call.group);
    trace.span(std::string(collective_name(call.op_type)),
               1 + static_cast<size_t>(lane - free_from.begin()), call.begin, call.end,
               "\"bytes\":" + std::to_string(call.bytes) +
                   ",\"sequence\":" + std::to_string(call.sequence) + ",\"group size\":" +
                   std::to_string(group == record.groups.end() ? 0 : group->second.size));
  }
}

void add_rank(const RankRecord& record, std::string& json) {
  RankTrace trace(json, record.rank());
  trace.name("process_name", 0, "rank " + std::to_string(record.rank()));
  trace.name("thread_name", 0, "training");
  for (const auto& span : record.spans) {
    trace.span(kTraceNames.at(static_cast<size_t>(span.phase)), 0, span.begin, span.end,
               "\"step\":" + std::to_string(span.step));
  }
  add_collectives(record, trace);
  for (const auto& step : record.steps) trace.counter("loss", step.end, step.loss);
  for (const auto& [time, sample] : record.process) {
    trace.counter("resident MiB", time, static_cast<double>(sample.resident) / (1 << 20));
  }
  for (const auto& [time, sample] : record.gpus) {
    if (sample.utilisation == kUnknown) continue;
    trace.counter("GPU " + std::to_string(sample.number) + " %", time, sample.utilisation);
  }
}

}  // namespace

std::string to_trace(const Run& run) {
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (const auto& record : run.ranks) add_rank(record, json);
  return json + "]}\n";
}

}  // namespace checker::monitor
