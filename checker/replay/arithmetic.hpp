#pragma once
/// Arithmetic on parameters and gradients, and what tells wrong ones apart.
#include <string>
#include <vector>

#include "deviation.hpp"
#include "evidence/tensors.hpp"

namespace replay {

/// Two ways to compute the same thing differ by less, relatively, also in single precision.
constexpr double kSame = 1e-6;

/// What JSON can hold; a deviation that is NaN is as wrong as can be.
double finite(double value);

bool in_range(const std::vector<uint64_t>& ids, size_t size);

Flat plus(Flat a, const Flat& b);
Flat scaled(Flat values, double factor);

/// The mean of these, each with its weight.
Flat weighted_mean(const std::vector<Flat>& parts, const std::vector<double>& weights);
/// The number by which these are larger than `wanted`, all alike; 0 if there is none.
double multiple_of(const Flat& got, const Flat& wanted);

/// That number for each parameter of more than one element whose gradient is not to be zero; none
/// if one of them has no such number.
Flat multiples_of(const Flat& got, const Flat& wanted,
                  const std::vector<checker::TensorSeen>& parameters);

/// Zeros for the parameters that no optimizer stepped.
void keep_stepped(Flat& gradients, const std::vector<bool>& stepped,
                  const std::vector<checker::TensorSeen>& parameters);

/// Of the groups of several optimizers each should have those of one.
double rates_deviation(const Flat& got, const Flat& expected);
/// By which all rates are larger than they should be; 0 if there is none.
double common_factor(const Flat& got, const Flat& expected);

/// The parameters whose gradients differ.
std::vector<std::string> names_apart(const Flat& got, const Flat& mean,
                                     const std::vector<checker::TensorSeen>& parameters);

/// The ranks whose mean these gradients are, including `own`, if they are not all. local: those of
/// each rank's batches.
std::vector<size_t> ranks_averaged(const Flat& got, const std::vector<Flat>& local, size_t own);

}  // namespace replay
