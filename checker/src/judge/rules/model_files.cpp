#include "judge/rules/model_files.hpp"

#include <algorithm>

#include "evidence/folders.hpp"
#include "support/text.hpp"

namespace checker::rules {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSafetensors = ".safetensors";
constexpr const char* kArchive = "archive";  // see replay/file_format.hpp

// What shows it, as findings.yaml calls the line of evidence.
const char* sign_of(const std::string& format) {
  if (format == kArchive) return "begins_with_pk";
  if (format == "empty") return "has_no_bytes";
  return format == "cut" ? "ends_too_early" : "has_no_header";
}

Symptom no_safetensors(const RunContext& context, size_t rank, const FileContent& file) {
  Symptom symptom{.id = "not_safetensors",
                  .values = context.values(),
                  .evidence = {{sign_of(file.format), {}}},
                  .variant = file.format};
  symptom.values["rank"] = rank;
  symptom.values["file"] = file.file.string();
  return symptom;
}

// The file of that name; else what torch::save wrote instead, under an ending of its own.
const FileContent* file_named(const std::vector<FileContent>& files, const std::string& name) {
  const auto path = fs::path(kOutputFolder) / name;
  const FileContent* other_format = nullptr;
  for (const auto& file : files) {
    if (file.file == path) return &file;
    if (file.format == kArchive && file.file.parent_path() == path.parent_path() &&
        file.file.stem() == path.stem()) {
      other_format = &file;
    }
  }
  return other_format;
}

// "epoch 2", as people call it.
std::string model_called(const RunContext& context, const std::string& holds) {
  for (const auto* model : {"best", "final"}) {
    if (holds == epoch_of(context, model))
      return "the " + std::string(model) + " model (" + holds + ")";
  }
  if (holds.starts_with("epoch ")) return "the model after " + holds;
  return holds == "initial" ? "the model from before the training" : "none of this run's models";
}

// A name under which another model lies than the step's TODOs want there.
struct OtherModel {
  std::string name, holds, wanted;
};

Symptom other_models(const RunContext& context, const std::vector<OtherModel>& others) {
  const auto& first = others.front();
  const auto& last = others.back();
  const bool swapped =
      others.size() > 1 && first.holds == last.wanted && last.holds == first.wanted;
  Symptom symptom{.id = "model_under_another_name",
                  .values = context.values(),
                  .variant = swapped ? "swapped" : "other_model"};
  symptom.values["file"] = first.name;
  symptom.values["other"] = last.name;
  symptom.values["model"] = model_called(context, first.wanted);
  for (const auto& other : others) {
    symptom.evidence.push_back({"holds",
                                {{"name", other.name},
                                 {"held", model_called(context, other.holds)},
                                 {"wanted", model_called(context, other.wanted)}}});
  }
  return symptom;
}

Symptom no_such_files(const RunContext& context, const std::vector<std::string>& names,
                      const std::vector<FileContent>& files) {
  Symptom symptom{.id = "model_under_another_name", .values = context.values()};
  symptom.values["file"] = join(names, " and no ");
  symptom.evidence.push_back({"left", {{"files", list_of_files(files)}}});
  return symptom;
}

}  // namespace

std::vector<FileContent> files_left_by(const RunContext& context, size_t rank) {
  auto files = context.truth.ranks[rank].files;
  for (auto& file : files) {
    file.file = file.file.lexically_relative(context.run().ranks[rank].folder);
  }
  return files;
}

std::vector<FileContent> in_the_output_folder(std::vector<FileContent> files) {
  std::erase_if(files, [](const FileContent& file) {
    return file.file.empty() || *file.file.begin() != kOutputFolder;
  });
  return files;
}

bool holds(const std::vector<FileContent>& files, const std::string& state) {
  return std::ranges::any_of(files, [&](const FileContent& file) { return file.holds == state; });
}

std::string list_of_files(const std::vector<FileContent>& files) {
  std::string text;
  for (const auto& file : files) {
    text += (text.empty() ? "" : "; ") + file.file.string() + ": " + file.holds;
  }
  return text.empty() ? "no files" : text;
}

std::string epoch_of(const RunContext& context, std::string_view model) {
  const auto& losses = context.truth.validation;
  const auto best = static_cast<size_t>(std::ranges::min_element(losses) - losses.begin());
  return "epoch " + std::to_string(model == "best" ? best + 1 : losses.size());
}

std::optional<Symptom> broken_safetensors(const RunContext& context) {
  for (size_t rank = 0; rank < context.truth.ranks.size(); ++rank) {
    for (const auto& file : in_the_output_folder(files_left_by(context, rank))) {
      if (file.file.extension() == kSafetensors && file.format != "safetensors")
        return no_safetensors(context, rank, file);
    }
  }
  return std::nullopt;
}

std::optional<Symptom> misnamed_models(const RunContext& context) {
  auto files = in_the_output_folder(files_left_by(context, 0));
  std::vector<std::string> missing;
  std::vector<OtherModel> others;
  for (const auto& [model, name] : context.course.models_of(context.step)) {
    const auto path = fs::path(kOutputFolder) / name;
    if (name.ends_with('/')) {  // in parts, which have no names of their own
      std::erase_if(files, [&](const auto& file) { return file.file.parent_path() / "" == path; });
      continue;
    }
    const auto* file = file_named(files, name);
    const auto wanted = epoch_of(context, model);
    if (!file) {
      missing.push_back(name);
    } else if (file->holds != wanted) {
      others.push_back({file->file.filename().string(), file->holds, wanted});
    }
  }
  if (!missing.empty()) return no_such_files(context, missing, files);
  if (!others.empty()) return other_models(context, others);
  return std::nullopt;
}

}  // namespace checker::rules
