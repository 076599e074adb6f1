#pragma once
/// Real spherical harmonics, normalised so that the integral of each one's square over the sphere
/// is 1, by recurrences over the degree (Holmes and Featherstone 2002, J. Geodesy 76, eqs. 11-13;
/// theirs are normalised to 4 pi).
#include <cstdint>
#include <vector>

namespace tasks::weather::planet {

/// A field's coefficients in one fixed order: for each degree l from 1 on, for each order m from 0
/// to l, that of cos(m longitude) and, where m > 0, that of sin(m longitude).
struct Coefficient {
  int64_t degree, order;
  bool sine;
};
std::vector<Coefficient> coefficients(int64_t degree);

/// The harmonics on a grid of cells: `height` latitudes from north to south, which leave out the
/// poles by half a cell, and `width` longitudes.
class Harmonics {
 public:
  Harmonics(int64_t degree, int64_t height, int64_t width);

  /// Each adds `factor` times a field to `field`, [height, width]. values: its coefficients.
  void add(const double* values, double factor, double* field) const;
  /// The wind of a streamfunction psi: eastward -d psi / d latitude, and northward
  /// d psi / d longitude / cos(latitude).
  void add_eastward(const double* values, double factor, double* field) const;
  void add_northward(const double* values, double factor, double* field) const;

 private:
  /// What of the latitude each coefficient is multiplied by, [height, coefficients].
  using Profile = std::vector<double>;
  void add(const double* values, double factor, const Profile& profile, bool along_longitude,
           double* field) const;

  int64_t degree_, height_, width_;
  std::vector<Coefficient> coefficients_;
  Profile value_, slope_, over_cosine_;
  std::vector<double> cosine_, sine_;  ///< [degree + 1, width]
};

}  // namespace tasks::weather::planet
