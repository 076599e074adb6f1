// What is read once per build folder instead of with every source: see Targets.cmake.
#include <torch/torch.h>

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <ostream>

// clang keeps the virtual functions of torch's class templates for every source that it compiles
// with this header, and instantiates them there, used or not: 3 of the 6 seconds that a trainer
// took. What is called here is instantiated here. Nothing of it lands in a program, and all of it
// may be missing: then a compilation only takes longer. Private members need -fno-access-control,
// here alone.
#if defined(__clang__) && TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11

namespace precompiled {

template <typename T>
T& one();  // of its kind; only named

template <typename... Impl>
void modules() {
  (one<Impl>().torch::nn::template Cloneable<Impl>::clone(), ...);
  (one<Impl>().torch::nn::template Cloneable<Impl>::clone_(one<Impl>(), {}), ...);
  (one<Impl>().Impl::reset(), ...);
  (one<Impl>().Impl::pretty_print(one<std::ostream>()), ...);
}

template <typename... Copied>
void copies() {
  (one<Copied>().Copied::clone(), ...);
}

template <typename... Kind>
void types() {
  (one<Kind>().Kind::equals(one<Kind>()), ...);
  (one<Kind>().Kind::containedTypes(), ...);
}

template <typename... Impl>
void transposed() {
  (one<Impl>().Impl::ConvNdImpl::pretty_print(one<std::ostream>()), ...);
}

template <typename... Dataset>
void datasets() {
  (one<Dataset>().Dataset::get_batch({}), ...);
}

inline void instantiated() {
  using namespace torch::nn;
  modules<ModuleDictImpl, ParameterDictImpl, SequentialImpl, LinearImpl, UnflattenImpl,
          BilinearImpl, SoftmaxImpl, SoftminImpl, LogSoftmaxImpl, ThresholdImpl,
          MultiheadAttentionImpl, AdaptiveLogSoftmaxWithLossImpl, Conv1dImpl, Conv2dImpl,
          Conv3dImpl, ConvTranspose1dImpl, ConvTranspose2dImpl, ConvTranspose3dImpl, EmbeddingImpl,
          EmbeddingBagImpl, FoldImpl, UnfoldImpl, LayerNormImpl, LocalResponseNormImpl,
          CrossMapLRN2dImpl, GroupNormImpl, FractionalMaxPool2dImpl, FractionalMaxPool3dImpl,
          RNNImpl, LSTMImpl, GRUImpl, RNNCellImpl, LSTMCellImpl, GRUCellImpl,
          TransformerEncoderLayerImpl, TransformerDecoderLayerImpl, TransformerEncoderImpl,
          TransformerDecoderImpl>();
  transposed<ConvTranspose1dImpl, ConvTranspose2dImpl, ConvTranspose3dImpl>();
  using namespace torch::optim;
  copies<AdagradOptions, AdagradParamState, AdamOptions, AdamParamState, AdamWOptions,
         AdamWParamState, LBFGSOptions, LBFGSParamState, RMSpropOptions, RMSpropParamState,
         SGDOptions, SGDParamState>();
  using namespace torch::jit;
  copies<ComplexAttr, ComplexValsAttr, FloatAttr, FloatsAttr, IntAttr, IntsAttr, StringAttr,
         StringsAttr, TensorAttr, TensorsAttr, TypeAttr, TypesAttr, IValueAttr>();
  types<c10::ListType, c10::FutureType, c10::AwaitType, c10::RRefType>();
  datasets<torch::data::datasets::MNIST, torch::data::datasets::TensorDataset>();
}

}  // namespace precompiled

#endif
