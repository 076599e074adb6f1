#pragma once
/// A planet whose weather is linear and random, so that the best possible forecast is known. Seven
/// latent fields (the streamfunction at four levels, temperature at two, humidity) are sums of
/// spherical harmonics. In a time step each of their waves drifts, as Rossby-Haurwitz waves over
/// solid rotation do (Haurwitz 1940, J. Marine Res. 3, 254-267), fades a little, and gets as much
/// noise as it faded:
///   x(t + 1) = rho R(theta) x(t) + noise,  theta = (U m - beta m / (l (l + 1))) dt,
///   variance of x: S = l^-3,  variance of the noise: Q = S (1 - rho^2).
/// The 20 channels are linear in these. Each latent field can be read off one time step, so
/// rho R(theta) x(t) is the best forecast there is, and its error is the noise.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "harmonics.hpp"

namespace tasks::weather::planet {

/// The channels of the files, in the order of the tutorial's ERA5 files.
constexpr std::array<std::string_view, 20> kChannels{
    "u10",  "v10",  "t2m",  "sp",   "msl",  "t850", "u1000", "v1000", "z1000", "u850",
    "v850", "z850", "u500", "v500", "z500", "t500", "z50",   "r500",  "r850",  "tcwv"};
constexpr size_t kLatents = 7;

/// All latent fields' coefficients at one time.
using State = std::array<std::vector<double>, kLatents>;

class Planet {
 public:
  /// degree: of the finest waves, at least 1.
  Planet(int64_t degree, int64_t height, int64_t width);

  /// The states of so many time steps, from the climate on. Another stream, other weather.
  std::vector<State> run(int64_t steps, uint64_t stream) const;
  /// The best forecast of the next time step.
  State forecast(const State& state) const;
  /// The channels [20, height, width] of a state, in units of the planet's own.
  std::vector<float> fields(const State& state) const;

  /// The standard deviation of each channel over all of time and space, exactly: sums of S and, for
  /// winds, of S l (l + 1) / 2, over 4 pi.
  std::vector<double> deviations() const;
  /// The best forecast's root mean square error of u10 in standard deviations of u10, exactly. It
  /// is the same at every point of the sphere, so no weights change it:
  /// sqrt(sum Q l (l + 1) / sum S l (l + 1)).
  double least_error_of_u10() const;

 private:
  std::vector<double> advance(const std::vector<double>& values, size_t latent) const;

  int64_t cells_;
  std::vector<Coefficient> coefficients_;
  Harmonics harmonics_;
  std::vector<double> variances_;  ///< S
};

}  // namespace tasks::weather::planet
