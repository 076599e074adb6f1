#include "planet.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace tasks::weather::planet {
namespace {

// What is left of a wave after a step; the rest of its variance is noise.
const double kRho = std::exp(-0.03);
constexpr double kTimeStep = 0.7, kBeta = 1.5;

enum Latent : size_t { surface, low, middle, high, warmth850, warmth500, humidity };
// How fast the solid rotation carries each of them.
constexpr std::array<double, kLatents> kSpeed{0.5, 0.7, 1.0, 0.4, 0.7, 1.0, 0.6};

/// One term of a channel.
struct Term {
  enum Of { value, eastward, northward } of;
  Latent latent;
  double factor;
};
using Terms = std::vector<Term>;

const std::array<Terms, kChannels.size()>& channels() {
  using enum Term::Of;
  static const std::array<Terms, kChannels.size()> all{{
      {{eastward, surface, 0.7}},
      {{northward, surface, 0.7}},
      {{value, warmth850, 1}, {value, surface, 0.3}},
      {{value, surface, 1}},
      {{value, surface, 1}, {value, warmth850, -0.2}},
      {{value, warmth850, 1}},
      {{eastward, surface, 1}},
      {{northward, surface, 1}},
      {{value, surface, 1}},
      {{eastward, low, 1}},
      {{northward, low, 1}},
      {{value, low, 1}},
      {{eastward, middle, 1}},
      {{northward, middle, 1}},
      {{value, middle, 1}},
      {{value, warmth500, 1}},
      {{value, high, 1}},
      {{value, humidity, 1}, {value, warmth500, -0.3}},
      {{value, humidity, 1}},
      {{value, humidity, 1}, {value, warmth850, 0.2}},
  }};
  return all;
}

/// Normal numbers. Those of the standard library differ from one to the next.
class Normal {
 public:
  explicit Normal(uint64_t seed) : engine_(seed) {}

  // Box and Muller 1958, https://doi.org/10.1214/aoms/1177706645.
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  /// In (0, 1], by 53 random bits.
  double uniform() { return (double(engine_() >> 11) + 1) * 0x1p-53; }

  std::mt19937_64 engine_;  // the standard fixes its output
};

}  // namespace

Planet::Planet(int64_t degree, int64_t height, int64_t width)
    : cells_(height * width),
      coefficients_(coefficients(degree)),
      harmonics_(degree, height, width) {
  for (const auto& own : coefficients_) variances_.push_back(std::pow(double(own.degree), -3));
}

std::vector<double> Planet::advance(const std::vector<double>& values, size_t latent) const {
  auto next = values;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [l, m, sine] = coefficients_[i];
    if (m == 0) {
      next[i] = kRho * values[i];
    } else if (!sine) {  // the sine's coefficient follows
      const double drift = kSpeed[latent] * double(m) - kBeta * double(m) / double(l * (l + 1));
      const double c = std::cos(drift * kTimeStep), s = std::sin(drift * kTimeStep);
      next[i] = kRho * (c * values[i] - s * values[i + 1]);
      next[i + 1] = kRho * (s * values[i] + c * values[i + 1]);
    }
  }
  return next;
}

State Planet::forecast(const State& state) const {
  State next;
  for (size_t latent = 0; latent < kLatents; ++latent) {
    next[latent] = advance(state[latent], latent);
  }
  return next;
}

std::vector<State> Planet::run(int64_t steps, uint64_t stream) const {
  Normal normal(stream);
  State state;
  for (auto& values : state) {
    for (const double variance : variances_) values.push_back(std::sqrt(variance) * normal());
  }
  std::vector<State> states{state};
  const double fresh = std::sqrt(1 - kRho * kRho);
  while (states.size() < static_cast<size_t>(steps)) {
    auto next = forecast(states.back());
    for (auto& values : next) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] += fresh * std::sqrt(variances_[i]) * normal();
      }
    }
    states.push_back(std::move(next));
  }
  return states;
}

std::vector<float> Planet::fields(const State& state) const {
  std::vector<float> all;
  std::vector<double> field(static_cast<size_t>(cells_));
  for (const auto& terms : channels()) {
    std::ranges::fill(field, 0.0);
    for (const auto& [of, latent, factor] : terms) {
      const double* values = state[latent].data();
      if (of == Term::value) harmonics_.add(values, factor, field.data());
      if (of == Term::eastward) harmonics_.add_eastward(values, factor, field.data());
      if (of == Term::northward) harmonics_.add_northward(values, factor, field.data());
    }
    all.insert(all.end(), field.begin(), field.end());
  }
  return all;
}

std::vector<double> Planet::deviations() const {
  double of_values = 0, of_winds = 0;
  for (size_t i = 0; i < coefficients_.size(); ++i) {
    const auto l = double(coefficients_[i].degree);
    of_values += variances_[i] / (4 * std::numbers::pi);
    of_winds += variances_[i] * l * (l + 1) / 2 / (4 * std::numbers::pi);
  }
  std::vector<double> all;
  for (const auto& terms : channels()) {
    double variance = 0;  // the latent fields are independent
    for (const auto& [of, latent, factor] : terms) {
      variance += factor * factor * (of == Term::value ? of_values : of_winds);
    }
    all.push_back(std::sqrt(variance));
  }
  return all;
}

double Planet::least_error_of_u10() const {
  double noise = 0, all = 0;
  for (size_t i = 0; i < coefficients_.size(); ++i) {
    const auto l = double(coefficients_[i].degree);
    noise += variances_[i] * (1 - kRho * kRho) * l * (l + 1);
    all += variances_[i] * l * (l + 1);
  }
  return std::sqrt(noise / all);
}

}  // namespace tasks::weather::planet
