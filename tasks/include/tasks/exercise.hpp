#pragma once
/// Helpers for the exercises C1 to C11: numbers to work on, and functions that show the results.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tasks {

/// This rank's numbers, and no other's: a tensor of so many float64 values. They are whole, and
/// other ones in each run that the checker judges.
at::Tensor my_numbers(int64_t count);

/// Prints a result. The checker holds it against what it must be.
void show(std::string_view name, const at::Tensor& result);
void show(std::string_view name, int64_t result);

/// Writes numbers into a file, as slowly as a disk that others use as well.
void write_numbers(const std::filesystem::path& file, const at::Tensor& numbers);
/// The numbers in a file. Throws Error if it is not there, or not whole.
at::Tensor read_numbers(const std::filesystem::path& file);

}  // namespace tasks
