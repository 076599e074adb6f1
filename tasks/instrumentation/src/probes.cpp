#include "probes.hpp"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <vector>

namespace instrumentation {
namespace {

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The whole numbers of a line, up to what is none.
std::vector<uint64_t> numbers_of(std::string_view line) {
  std::vector<uint64_t> numbers;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at != end) {
    if (*at == ' ' || *at == '\t') {
      ++at;
      continue;
    }
    uint64_t number = 0;
    const auto [rest, failure] = std::from_chars(at, end, number);
    if (failure != std::errc()) break;
    numbers.push_back(number);
    at = rest;
  }
  return numbers;
}

// What stands behind `key` at the beginning of a line.
std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const auto rest = text.substr(at + key.size());
    const auto numbers = numbers_of(rest.substr(0, rest.find('\n')));
    if (!numbers.empty()) return numbers.front();
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessSample> parse_process(std::string_view stat, std::string_view status,
                                           std::string_view io, uint64_t ticks_per_second) {
  // The program's name, in brackets, may hold anything; behind it comes the state, one letter.
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos || name_end + 4 > stat.size()) return std::nullopt;
  // Some fields may be negative, so they are counted as words: utime and stime are 14 and 15.
  auto rest = stat.substr(name_end + 4);
  for (int field = 4; field < 14; ++field) {
    const auto blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  const auto times = numbers_of(rest);
  const auto resident = number_after(status, "VmRSS:");
  if (times.size() < 2 || !resident) return std::nullopt;
  return ProcessSample{
      .cpu = (times[0] + times[1]) * (1'000'000'000 / ticks_per_second),
      .resident = *resident << 10,
      .peak = number_after(status, "VmHWM:").value_or(*resident) << 10,
      .read = number_after(io, "read_bytes:").value_or(0),
      .written = number_after(io, "write_bytes:").value_or(0),
  };
}

std::optional<NodeSample> parse_node(std::string_view stat, std::string_view meminfo) {
  // user nice system idle iowait irq softirq steal; guests are part of user and nice.
  const auto line = stat.substr(0, stat.find('\n'));
  const auto total = number_after(meminfo, "MemTotal:");
  const auto available = number_after(meminfo, "MemAvailable:");
  if (!line.starts_with("cpu ") || !total || !available) return std::nullopt;
  const auto ticks = numbers_of(line.substr(4));
  if (ticks.size() < 4) return std::nullopt;
  NodeSample sample{
      .busy = 0, .ticks = 0, .total = *total << 10, .available = *available << 10, .cpus = 0};
  for (size_t i = 0; i < std::min<size_t>(8, ticks.size()); ++i) {
    sample.ticks += ticks[i];
    if (i != 3 && i != 4) sample.busy += ticks[i];
  }
  for (size_t at = stat.find("\ncpu"); at != std::string_view::npos;
       at = stat.find("\ncpu", at + 1)) {
    ++sample.cpus;
  }
  return sample;
}

std::optional<ProcessSample> sample_process() {
  return parse_process(text_of("/proc/self/stat"), text_of("/proc/self/status"),
                       text_of("/proc/self/io"), static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
}

std::optional<NodeSample> sample_node() {
  return parse_node(text_of("/proc/stat"), text_of("/proc/meminfo"));
}

}  // namespace instrumentation
