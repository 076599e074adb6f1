#include "harmonics.hpp"

#include <cmath>
#include <numbers>

namespace tasks::weather::planet {
namespace {

using std::numbers::pi;

/// The associated Legendre functions of sin(latitude), at [l, m].
class Legendre {
 public:
  Legendre(int64_t degree, double latitude) : rows_(degree + 1), values_(rows_ * rows_, 0) {
    const double x = std::sin(latitude), cosine = std::cos(latitude);
    at(0, 0) = std::sqrt(1 / (4 * pi));
    for (int64_t m = 1; m <= degree; ++m) {
      at(m, m) = std::sqrt((2.0 * double(m) + 1) / (2.0 * double(m))) * cosine * at(m - 1, m - 1);
    }
    for (int64_t m = 0; m < degree; ++m) {
      at(m + 1, m) = std::sqrt(2.0 * double(m) + 3) * x * at(m, m);
      for (int64_t l = m + 2; l <= degree; ++l) {
        at(l, m) = (x * at(l - 1, m) - step(l - 1, m) * at(l - 2, m)) / step(l, m);
      }
    }
  }

  /// Zero where there is none.
  double operator()(int64_t l, int64_t m) const {
    return l < m ? 0 : values_[static_cast<size_t>(l * rows_ + m)];
  }

  /// sin(latitude) P(l - 1) = step(l) P(l) + step(l - 1) P(l - 2).
  static double step(int64_t l, int64_t m) {
    return std::sqrt(double(l * l - m * m) / double(4 * l * l - 1));
  }

 private:
  double& at(int64_t l, int64_t m) { return values_[static_cast<size_t>(l * rows_ + m)]; }

  int64_t rows_;
  std::vector<double> values_;
};

}  // namespace

std::vector<Coefficient> coefficients(int64_t degree) {
  std::vector<Coefficient> all;
  for (int64_t l = 1; l <= degree; ++l) {
    for (int64_t m = 0; m <= l; ++m) {
      all.push_back({l, m, false});
      if (m > 0) all.push_back({l, m, true});
    }
  }
  return all;
}

Harmonics::Harmonics(int64_t degree, int64_t height, int64_t width)
    : degree_(degree), height_(height), width_(width), coefficients_(coefficients(degree)) {
  for (int64_t row = 0; row < height; ++row) {
    const double latitude = pi / 2 - pi * (double(row) + 0.5) / double(height);
    const Legendre p(degree + 1, latitude);
    for (const auto [l, m, sine] : coefficients_) {
      const double scale = (m == 0 ? 1 : std::sqrt(2.0)) / std::cos(latitude);
      // cos(latitude) dP(l) / d latitude, by its neighbours.
      const double slope = double(l + 1) * Legendre::step(l, m) * p(l - 1, m) -
                           double(l) * Legendre::step(l + 1, m) * p(l + 1, m);
      value_.push_back(scale * std::cos(latitude) * p(l, m));
      slope_.push_back(-scale * slope);
      over_cosine_.push_back(scale * double(m) * p(l, m));
    }
  }
  for (int64_t m = 0; m <= degree; ++m) {
    for (int64_t column = 0; column < width; ++column) {
      const double angle = 2 * pi * double(m * column % width) / double(width);
      cosine_.push_back(std::cos(angle));
      sine_.push_back(std::sin(angle));
    }
  }
}

// First over degrees at each latitude, then over orders at each longitude.
void Harmonics::add(const double* values, double factor, const Profile& profile,
                    bool along_longitude, double* field) const {
  const size_t count = coefficients_.size();
  std::vector<double> cosines(static_cast<size_t>(degree_) + 1);
  auto sines = cosines;
  for (int64_t row = 0; row < height_; ++row) {
    cosines.assign(cosines.size(), 0);
    sines.assign(sines.size(), 0);
    for (size_t i = 0; i < count; ++i) {
      const auto& [l, m, sine] = coefficients_[i];
      const auto order = static_cast<size_t>(m);
      const double term = factor * profile[static_cast<size_t>(row) * count + i] * values[i];
      // d cos(m x) = -m sin(m x), d sin(m x) = m cos(m x); the profile has the m.
      if (!along_longitude) {
        (sine ? sines : cosines)[order] += term;
      } else if (sine) {
        cosines[order] += term;
      } else {
        sines[order] -= term;
      }
    }
    double* line = field + row * width_;
    for (int64_t m = 0; m <= degree_; ++m) {
      const double a = cosines[static_cast<size_t>(m)], b = sines[static_cast<size_t>(m)];
      const double* cosine = &cosine_[static_cast<size_t>(m * width_)];
      const double* sine = &sine_[static_cast<size_t>(m * width_)];
      for (int64_t column = 0; column < width_; ++column) {
        line[column] += a * cosine[column] + b * sine[column];
      }
    }
  }
}

void Harmonics::add(const double* values, double factor, double* field) const {
  add(values, factor, value_, false, field);
}
void Harmonics::add_eastward(const double* values, double factor, double* field) const {
  add(values, factor, slope_, false, field);
}
void Harmonics::add_northward(const double* values, double factor, double* field) const {
  add(values, factor, over_cosine_, true, field);
}

}  // namespace tasks::weather::planet
