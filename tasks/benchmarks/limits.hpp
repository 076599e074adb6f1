#pragma once
/// What a step could take at best on this machine (the roofline: Williams et al. 2009,
/// https://doi.org/10.1145/1498765.1498785).
#include <torch/nn/module.h>

#include "tasks/options.hpp"

namespace limits {

/// Bytes read and written a millisecond by a large copy.
double bytes_per_ms(torch::Device device);
/// Operations a millisecond of a large product of this type.
double flops_per_ms(torch::Device device, torch::Dtype type);

/// Bytes of logits that pass: written, read for the loss, read and written for the gradient, which
/// is read for each of two products; not kept: only what the two products read is written.
double logits_bytes(int64_t targets, int64_t vocabulary, torch::Dtype type, bool kept);

/// The fewest milliseconds of a step of a language model with these parameters: the time of its
/// products (two operations a weight forward, four backward, for each target); or, for the last
/// layer, of its logits_bytes() where these take longer; and of the bytes that AdamW reads and
/// writes. Everything else is left out.
double step_ms(const torch::nn::Module& model, int64_t targets, const tasks::Options& options,
               torch::Device device);

}  // namespace limits
