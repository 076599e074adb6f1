// The built-in planet: its formulas against its data.
#include "planet/planet.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace tasks::weather::planet {
namespace {

using std::numbers::pi;

constexpr int64_t kDegree = 5, kHeight = 16, kWidth = 32;
constexpr size_t kCells = kHeight * kWidth;

std::vector<double> one_harmonic(size_t which, int64_t degree = kDegree) {
  std::vector<double> values(coefficients(degree).size(), 0);
  values[which] = 1;
  return values;
}

// A quadrature over rows of cells: exact enough on a fine grid.
double integral_of_product(const std::vector<double>& a, const std::vector<double>& b,
                           int64_t height, int64_t width) {
  double sum = 0;
  for (int64_t row = 0; row < height; ++row) {
    const double south = pi / 2 - pi * double(row + 1) / double(height);
    const double area =
        2 * pi / double(width) * (std::sin(south + pi / double(height)) - std::sin(south));
    for (int64_t column = 0; column < width; ++column) {
      const auto i = static_cast<size_t>(row * width + column);
      sum += area * a[i] * b[i];
    }
  }
  return sum;
}

TEST(Harmonics, AreOrthonormal) {
  constexpr int64_t height = 240, width = 24, degree = 4;
  const Harmonics harmonics(degree, height, width);
  std::vector<std::vector<double>> fields;
  for (size_t i = 0; i < coefficients(degree).size(); ++i) {
    std::vector<double> field(height * width, 0);
    harmonics.add(one_harmonic(i, degree).data(), 1, field.data());
    fields.push_back(std::move(field));
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      EXPECT_NEAR(integral_of_product(fields[i], fields[j], height, width), i == j ? 1 : 0, 2e-3)
          << i << " and " << j;
    }
  }
}

TEST(Harmonics, HaveTheClosedFormsOfLowDegrees) {
  const Harmonics harmonics(2, kHeight, kWidth);
  const auto names = coefficients(2);
  ASSERT_EQ(names.size(), 8);
  std::vector<double> field(kCells, 0);
  for (size_t i = 0; i < names.size(); ++i) {
    harmonics.add(one_harmonic(i, 2).data(), double(i + 1), field.data());
  }
  for (int64_t row = 0; row < kHeight; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) {
      const double latitude = pi / 2 - pi * (double(row) + 0.5) / double(kHeight);
      const double x = 2 * pi * double(column) / double(kWidth);
      const double s = std::sin(latitude), c = std::cos(latitude);
      // Degree 1, then degree 2, each by orders.
      const double expected =
          std::sqrt(3 / (4 * pi)) * (s + 2 * c * std::cos(x) + 3 * c * std::sin(x)) +
          4 * std::sqrt(5 / (16 * pi)) * (3 * s * s - 1) +
          std::sqrt(15 / (4 * pi)) * s * c * (5 * std::cos(x) + 6 * std::sin(x)) +
          std::sqrt(15 / (16 * pi)) * c * c * (7 * std::cos(2 * x) + 8 * std::sin(2 * x));
      EXPECT_NEAR(field[static_cast<size_t>(row * kWidth + column)], expected, 1e-12);
    }
  }
}

// Winds are derivatives of the streamfunction: a grid whose rows and columns are h apart shows
// them.
TEST(Harmonics, WindsAreFiniteDifferences) {
  constexpr int64_t height = 720, width = 1440;
  const Harmonics harmonics(kDegree, height, width);
  constexpr size_t cells = height * width;
  for (size_t i = 0; i < coefficients(kDegree).size(); i += 5) {
    const auto values = one_harmonic(i);
    std::vector<double> psi(cells, 0), east(cells, 0), north(cells, 0);
    harmonics.add(values.data(), 1, psi.data());
    harmonics.add_eastward(values.data(), 1, east.data());
    harmonics.add_northward(values.data(), 1, north.data());
    const double h = pi / double(height);
    for (const int64_t row : {40, 200, 391, 650}) {
      for (const int64_t column : {1, 333, 800}) {
        const auto at = static_cast<size_t>(row * width + column);
        const double latitude = pi / 2 - h * (double(row) + 0.5);
        EXPECT_NEAR(east[at], (psi[at + width] - psi[at - width]) / (2 * h), 2e-3);
        EXPECT_NEAR(north[at], (psi[at + 1] - psi[at - 1]) / (2 * h) / std::cos(latitude), 2e-3);
      }
    }
  }
}

struct Sample {
  double variance = 0, error = 0, squares = 0;
  int64_t states = 0;
};

// Area-weighted mean squares of the first channel and of the best forecast's error in it.
Sample sample(const Planet& planet, int64_t steps) {
  Sample sum;
  const auto states = planet.run(steps, 99);
  for (size_t t = 0; t + 1 < states.size(); ++t) {
    const auto forecast = planet.fields(planet.forecast(states[t]));
    const auto truth = planet.fields(states[t + 1]);
    double variance = 0, error = 0, weights = 0;
    for (size_t i = 0; i < kCells; ++i) {
      const double weight = std::cos(pi / 2 - pi * (double(i / kWidth) + 0.5) / double(kHeight));
      weights += weight;
      variance += weight * truth[i] * truth[i];
      error += weight * (forecast[i] - truth[i]) * (forecast[i] - truth[i]);
    }
    sum.variance += variance / weights;
    sum.error += error / weights;
    sum.squares += error * error / weights / weights;
    ++sum.states;
  }
  return sum;
}

TEST(Planet, FormulaOfTheFloorAgreesWithItsData) {
  const Planet planet(kDegree, kHeight, kWidth);
  const auto found = sample(planet, 2000);
  const auto count = double(found.states);
  const double floor = planet.least_error_of_u10() * planet.deviations()[0];
  // Errors of different steps are independent, so their mean is known to this.
  const double mean = found.error / count;
  const double standard_error = std::sqrt((found.squares / count - mean * mean) / count);
  EXPECT_NEAR(mean, floor * floor, 4 * standard_error);
  EXPECT_LT(standard_error, 0.01 * mean);
  // A wave lasts 33 steps, so the variance is known less well.
  EXPECT_NEAR(std::sqrt(found.variance / count), planet.deviations()[0],
              0.1 * planet.deviations()[0]);
}

TEST(Planet, WavesFadeByTheSameFactorSoTheFloorIsInClosedForm) {
  EXPECT_NEAR(Planet(kDegree, kHeight, kWidth).least_error_of_u10(), std::sqrt(1 - std::exp(-0.06)),
              1e-12);
}

TEST(Planet, ChannelsHaveTheDeviationsThatItSays) {
  const Planet planet(3, kHeight, kWidth);
  const auto expected = planet.deviations();
  ASSERT_EQ(expected.size(), kChannels.size());
  std::vector<double> squares(kChannels.size(), 0);
  // States far apart are independent.
  constexpr size_t kApart = 100;
  const auto states = planet.run(60'000, 3);
  for (size_t t = 0; t < states.size(); t += kApart) {
    const auto fields = planet.fields(states[t]);
    for (size_t channel = 0; channel < kChannels.size(); ++channel) {
      double sum = 0, weights = 0;
      for (size_t i = 0; i < kCells; ++i) {
        const double weight = std::cos(pi / 2 - pi * (double(i / kWidth) + 0.5) / double(kHeight));
        weights += weight;
        sum += weight * fields[channel * kCells + i] * fields[channel * kCells + i];
      }
      squares[channel] += sum / weights;
    }
  }
  const double states_seen = double(states.size()) / kApart;
  for (size_t channel = 0; channel < kChannels.size(); ++channel) {
    EXPECT_NEAR(std::sqrt(squares[channel] / states_seen) / expected[channel], 1, 0.1)
        << kChannels[channel];
  }
}

TEST(Planet, WeatherIsTheSameForTheSameStream) {
  const Planet planet(kDegree, kHeight, kWidth);
  EXPECT_EQ(planet.run(3, 1), planet.run(3, 1));
  EXPECT_NE(planet.run(3, 1), planet.run(3, 2));
  // A longer run begins as a shorter one.
  EXPECT_EQ(planet.run(5, 1)[2], planet.run(3, 1)[2]);
}

}  // namespace
}  // namespace tasks::weather::planet
