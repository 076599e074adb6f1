#pragma once
/// Comparing two ways of doing the same thing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

namespace pairs {

inline double quantile(std::vector<double> values, double q) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(q * (values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// A work that returns a number says itself how long it took; others are timed.
template <typename Work>
double microseconds(Work& work) {
  if constexpr (std::is_same_v<decltype(work()), double>) return work();
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Runs both in turn, so that what else the machine does hits both, and reports the median and the
/// quartiles of the differences: means would follow the few iterations that were interrupted. The
/// benchmark must be registered with UseManualTime(); its time is that of `second`.
template <typename First, typename Second>
void compare(benchmark::State& state, First first, Second second) {
  for (int i = 0; i < 20; ++i) {  // buckets are rebuilt, memory and threads come to rest
    first();
    second();
  }
  std::vector<double> firsts;
  std::vector<double> seconds;
  std::vector<double> differences;
  for (auto _ : state) {
    const bool swap = differences.size() % 2 == 1;
    const double early = swap ? microseconds(second) : microseconds(first);
    const double late = swap ? microseconds(first) : microseconds(second);
    firsts.push_back(swap ? late : early);
    seconds.push_back(swap ? early : late);
    differences.push_back(seconds.back() - firsts.back());
    state.SetIterationTime(seconds.back() * 1e-6);
  }
  state.counters["bare_us"] = quantile(firsts, 0.5);
  state.counters["ours_us"] = quantile(seconds, 0.5);
  state.counters["extra_us"] = quantile(differences, 0.5);
  state.counters["extra_q1"] = quantile(differences, 0.25);
  state.counters["extra_q3"] = quantile(differences, 0.75);
}

}  // namespace pairs
