#pragma once
/// Kernels for NVIDIA GPUs. This page and what implements it know nothing of torch, so that nvcc
/// compiles them in seconds. Pointers are of the device's memory. Every function only enqueues, on
/// the stream given, and throws std::runtime_error if even that fails.
#include <cstdint>
#include <vector>

struct CUstream_st;

namespace tasks::operators::kernels {

using Stream = CUstream_st*;  // cudaStream_t

enum class Type { fp64, fp32, bf16, fp16 };

/// What torch calls cross_entropy, row by row: losses of the rows of `logits` by log-sum-exp, and
/// the loss's gradient in the logits' place. Sums are fp64 for fp64 logits, else fp32 ("wide").
struct CrossEntropy {
  Type type;
  void* logits;           ///< [rows, vocabulary], of `type`
  const int64_t* target;  ///< [rows]: a column, or ignore_index; anything else stops the program
  void* log_sums;         ///< [rows], wide: log of the sum of exp of a row
  void* losses;           ///< [rows], wide; 0 where ignored
  void* column_sums;      ///< [slabs(rows), vocabulary], wide: gradients are added
  int64_t rows, vocabulary;
  int64_t ignore_index;
  double label_smoothing;
  double gradient_factor;  ///< of gradients as they are stored, not of column_sums
};

/// Fills log_sums and losses.
void cross_entropy_losses(const CrossEntropy& arguments, Stream stream);
/// Replaces logits by the gradient of the sum of losses; needs log_sums. The sums of its columns,
/// a slab of rows each, are added to column_sums.
void cross_entropy_gradients(const CrossEntropy& arguments, Stream stream);
/// Into how many slabs so many rows are cut.
int64_t slabs(int64_t rows);

/// The last linear layer and its cross-entropy in one, for bf16 on Hopper GPUs. Logits are computed
/// once and in no memory at any time (as in Wijmans et al., Cut Your Losses in Large-Vocabulary
/// Language Models, 2024, https://arxiv.org/abs/2411.09009, who compute them twice); what is kept
/// are their exponentials, shifted by the target's logit. bf16 has fp32's range, so that these need
/// neither the greatest logit nor the softmax's denominator, which becomes a factor of the row.
/// Where they come near that range, they are made again, shifted by the greatest logit. Sums are
/// fp32.
struct ExponentialLosses {
  const void* hidden;     ///< bf16 [rows, width], as weight and bias; at multiples of 16 bytes
  const void* weight;     ///< [vocabulary, width], likewise
  const void* bias;       ///< [vocabulary]
  const int64_t* target;  ///< [rows]: a word, or ignore_index; anything else stops the program
  void* tiles;            ///< exponential_tile_bytes(rows, width), at a multiple of 16: room
  float* shifts;          ///< [rows], likewise
  float* partials;        ///< [exponential_parts(vocabulary), rows], likewise
  float* losses;          ///< [rows]; 0 where ignored
  float* factors;         ///< [rows]; 0 where ignored
  void* exponentials;     ///< bf16 [rows, stride], or null: not wanted. Times its row's factor each
                          ///< is the gradient of the sum of losses by the logit, at the target, too
  int64_t rows, width, vocabulary;
  int64_t stride;  ///< from row to row: vocabulary, up to a multiple of 8
  int64_t ignore_index;
};
constexpr int64_t kMostExponentialWidth = 128;  ///< of multiples of 8

bool has_exponential_losses(int device);
/// Fills losses, factors and, where they are wanted, exponentials.
void exponential_losses(const ExponentialLosses& arguments, Stream stream);
int64_t exponential_tile_bytes(int64_t rows, int64_t width);
int64_t exponential_parts(int64_t vocabulary);

/// rows: bf16 [count, width]. Each times its factor and, behind it, the factor itself as the sum of
/// two numbers, then zeros: a product with this has the columns' weighted sums in the columns from
/// `width` on. result: bf16 [count, width + kWeightColumns]. width: up to 1,000.
void weighted_rows(const void* rows, const float* factors, int64_t count, int64_t width,
                   void* result, Stream stream);
constexpr int64_t kWeightColumns = 8;  ///< products like multiples of 16 bytes
/// both: such a product, [rows, width + kWeightColumns], width a multiple of 4. product: [rows,
/// width]; sums: [rows].
void split_sums(const float* both, int64_t rows, int64_t width, float* product, float* sums,
                Stream stream);

/// One parameter and all that belongs to it; each `size` numbers long.
struct AdamWParameter {
  float* parameter;
  const float* gradient;
  float* exp_avg;
  float* exp_avg_sq;
  void* copy;  ///< of the new parameter, in the type of all copies; null: none
  int64_t size;
};

struct AdamWSettings {
  const float* learning_rate;  ///< one, on the GPU
  double beta1, beta2, epsilon, weight_decay;
};

/// A step of AdamW for all parameters together. step: one float, the number of this step from 1;
/// copies: bf16 or fp16.
void adamw(const std::vector<AdamWParameter>& parameters, const AdamWSettings& settings,
           const float* step, Type copies, Stream stream);

/// gradient: [count, width], of the rows of an embedding that `indices` ([count]) picked. Adds them
/// up by index, in the order of `count`, into `result` ([anything, width]), which is zero.
void embedding_gradient(const float* gradient, const int64_t* indices, int64_t count, int64_t width,
                        float* result, Stream stream);
/// The most indices that this is made for: its time grows with their square.
constexpr int64_t kMostEmbeddingIndices = 16384;

/// The same sums, short: row i of `rows` ([most, width]) is that of the index in words[i], which is
/// -1 where an index is repeated and from `count` on; such rows are left as they are.
void embedding_rows(const float* gradient, const int64_t* indices, int64_t count, int64_t most,
                    int64_t width, float* rows, int* words, Stream stream);

/// What all ranks have made of that, one after the other: rows, then words.
struct RankRows {
  const float* all;  ///< [ranks, most * (width + 1)], at a multiple of 16 bytes
  int64_t ranks, most, width;
  int64_t words;  ///< that there are, up to 2^31
};
/// The mean over ranks, into those rows of `result` ([words, width], all zero) that a rank has.
/// slots: [ranks, words], all -1, to work with.
void mean_of_rows(const RankRows& all, int* slots, float* result, Stream stream);

/// Where random numbers begin, as at::PhiloxCudaState has it: in a CUDA graph, on the device.
struct Random {
  uint64_t seed, offset;
  const int64_t* seed_at = nullptr;    ///< in a graph: instead of seed
  const int64_t* offset_at = nullptr;  ///< in a graph: to be added to offset
};

/// result = dropout(relu(input)), `size` numbers of `type`, fp32 or bf16, at multiples of 16 bytes.
struct ReluDropout {
  Type type;
  int64_t size;
  double dropout;  ///< probability; 0: none, and `random` is not used
  Random random;
};
void relu_dropout(const ReluDropout& arguments, const void* input, void* result, Stream stream);
/// gradient: the result's, whose zeros tell what was dropped.
void relu_dropout_gradient(const ReluDropout& arguments, const void* result, const void* gradient,
                           void* input_gradient, Stream stream);

/// Attention of short sequences (Vaswani et al. 2017, section 3.2), in which no position sees a
/// later one. Of what is in between nothing is kept: the gradient's kernel makes it again.
struct CausalAttention {
  Type type;              ///< fp32, or bf16, whose products alone are of bf16
  const void* projected;  ///< [batch, sequence, 3, heads, size]: queries, keys, values; at a
                          ///< multiple of 16 bytes, as all here
  int64_t batch, sequence, heads, size;
  double dropout;  ///< of the probabilities; 0: none, and `random` is not used
  Random random;
};
constexpr int64_t kMostAttentionSequence = 32;

bool has_causal_attention(int64_t sequence, int64_t size);
/// result: [batch, sequence, heads, size].
void causal_attention(const CausalAttention& arguments, void* result, Stream stream);
/// gradient: the result's; projected_gradient: all of it is written.
void causal_attention_gradient(const CausalAttention& arguments, const void* gradient,
                               void* projected_gradient, Stream stream);

/// The layer norm of residual + dropout(added), and what its gradient needs of it. All but `added`
/// are fp32; [rows, width], or as said.
struct ResidualNorm {
  Type type;  ///< of `added`: fp32 or bf16
  int64_t rows, width;
  const float* residual;
  const void* added;    ///< null: nothing, and `sum` is not used forward
  const float* weight;  ///< [width]
  const float* bias;    ///< [width]
  double epsilon;
  double dropout;  ///< probability; 0: none, and `random` is not used
  Random random;
  float* sum;   ///< residual + dropout(added)
  float* mean;  ///< [rows]
  float* rstd;  ///< [rows], 1 / standard deviation
};
constexpr int64_t kMostNormWidth = 1024;  ///< of multiples of 4

/// narrow: the output once more, as bf16. Either may be null: not wanted.
void residual_norm(const ResidualNorm& arguments, float* output, void* narrow, Stream stream);

struct ResidualNormGradients {
  const float* sum;     ///< the sum's own, which goes on to both summands; null: zero
  const float* output;  ///< null: zero, as `narrow`
  const void* narrow;   ///< bf16, to be added to output
  float* residual;
  void* added;        ///< null: not wanted
  float* blocks;      ///< [norm_blocks(rows), 2, width], room for sums
  float* parameters;  ///< [2, width]: weight's and bias's
};
void residual_norm_gradients(const ResidualNorm& arguments, const ResidualNormGradients& gradients,
                             Stream stream);
int64_t norm_blocks(int64_t rows);

/// Batch normalisation of what lies channels-last (Ioffe and Szegedy 2015, algorithm 1,
/// https://arxiv.org/abs/1502.03167), and what a residual network has behind it: a sum and ReLU.
/// relu(weight * (input - mean) / deviation + bias + added), mean and deviation of each channel.
struct BatchNorm {
  Type type;               ///< fp32, bf16 or fp16: of input, added, output, and their gradients
  int64_t rows, channels;  ///< rows: the pixels of all pictures, at least 2
  const void* input;       ///< [rows, channels], at a multiple of 16 bytes, as all of `type`
  const void* added;       ///< likewise; null: nothing
  const float* weight;     ///< [channels], as bias, mean and rstd
  const float* bias;
  float* mean;
  float* rstd;        ///< 1 / deviation
  uint8_t* positive;  ///< [rows, channels / 4 of fp32, / 8 of others], a bit of each element: ReLU
                      ///< lets it through; null: no ReLU
  float* partials;    ///< [batch_norm_slabs(), 2, channels], room for sums
};

/// What evaluation will use, [channels] and one count; each may be null.
struct RunningStatistics {
  float* mean;
  float* variance;
  int64_t* batches;
  double momentum;  ///< the weight of this batch
};

struct BatchNormGradients {
  const void* output;
  void* input;
  void* added;        ///< null: not wanted
  float* parameters;  ///< [2, channels]: weight's and bias's
};

/// Whether there are kernels for so many channels.
bool has_batch_norm(Type type, int64_t channels);
int64_t batch_norm_slabs(Type type, int64_t rows, int64_t channels);
/// Fills mean, rstd, positive and output.
void batch_norm(const BatchNorm& arguments, double epsilon, const RunningStatistics& running,
                void* output, Stream stream);
/// Needs input, weight, mean, rstd and positive.
void batch_norm_gradients(const BatchNorm& arguments, const BatchNormGradients& gradients,
                          Stream stream);

/// Pictures of `type`, fp32, bf16 or fp16: [pictures, height, width, channels], at a multiple of 16
/// bytes, as what is made of them.
struct Pictures {
  Type type;
  int64_t pictures, height, width, channels;
};
/// Whether there are kernels for so many channels and pixels.
bool has_pools(const Pictures& input);

/// Means of 2 x 2 pixels, of fewer at an odd edge: [pictures, (height + 1) / 2, (width + 1) / 2,
/// channels].
void average_pool(const Pictures& arguments, const void* input, void* output, Stream stream);
/// output, input: gradients.
void average_pool_gradient(const Pictures& arguments, const void* output, void* input,
                           Stream stream);

/// The greatest of 3 x 3 pixels around every second one: [pictures, (height - 1) / 2 + 1, (width -
/// 1) / 2 + 1, channels]. winners: as many; which of the nine it is.
void max_pool(const Pictures& arguments, const void* input, void* output, uint8_t* winners,
              Stream stream);
void max_pool_gradient(const Pictures& arguments, const void* output, const uint8_t* winners,
                       void* input, Stream stream);

}  // namespace tasks::operators::kernels
