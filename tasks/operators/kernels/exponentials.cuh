#pragma once
/// The part of exponential_losses() that needs Hopper's own instructions.
#include "kernels.hpp"

namespace tasks::operators::kernels {

/// Fills shifts with the targets' logits (infinity where ignored), exponentials, if they are
/// wanted, with exp(logit - shift of the row), and partials with their sums over 128 words each.
void make_exponentials(const ExponentialLosses& arguments, Stream stream);

}  // namespace tasks::operators::kernels
