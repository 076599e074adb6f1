#pragma once
/// The models that lie in the output folder when a program has ended: in which format, and under
/// which names.
#include <optional>
#include <string>
#include <vector>

#include "judge/run_context.hpp"

namespace checker::rules {

/// By their paths from the folder that the rank ran in.
std::vector<FileContent> files_left_by(const RunContext& context, size_t rank);
/// What lies where --output said.
std::vector<FileContent> in_the_output_folder(std::vector<FileContent> files);
/// Whether one of them holds the model of this state, "epoch 2" for example.
bool holds(const std::vector<FileContent>& files, const std::string& state);
/// "output/model-best.safetensors: epoch 2; ..."
std::string list_of_files(const std::vector<FileContent>& files);

/// After which epoch a model, "best" or "final", is what it is: "epoch 2", as in
/// FileContent::holds. There must be losses of the validation.
std::string epoch_of(const RunContext& context, std::string_view model);

/// A file whose name says that it is a safetensors file, and that is none.
std::optional<Symptom> broken_safetensors(const RunContext& context);

/// A model that is not where the step's TODOs want it, or another one that is there instead.
/// Further files may have any names. An archive of torch::save may have another ending
/// (model-best.pt).
std::optional<Symptom> misnamed_models(const RunContext& context);

}  // namespace checker::rules
