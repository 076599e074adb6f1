#include "parts.hpp"

#include <fmt/format.h>

#include "parts/functions.hpp"
#include "tasks/options.hpp"
#include "tasks/registry.hpp"

namespace tasks::summaries {
namespace {

template <class Function>
Function* part(const char* module, const char* name, const std::filesystem::path& file,
               const char* library, const char* fix) {
  try {
    return reinterpret_cast<Function*>(load_function(module, name));
  } catch (const Error& error) {
    throw Error(
        fmt::format("{} needs {}, which this build does not have ({}). Fix: {}. Then run "
                    "./workbook build.",
                    file.string(), library, error.what(), fix));
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> load_sentence_pieces(const std::filesystem::path& file) {
  auto* const load = part<decltype(worldsize_sentence_pieces)>(
      "summaries_sentence_pieces", "worldsize_sentence_pieces", file, "SentencePiece",
      "run sudo apt-get install libsentencepiece-dev, or without root cmake "
      "-DWORLDSIZE_FETCH_SENTENCEPIECE=ON build/cpu");
  std::shared_ptr<const Tokenizer> tokenizer;
  try {
    load(file, tokenizer);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
  return tokenizer;
}

void for_each_arrow_pair(const std::filesystem::path& file,
                         const std::function<void(const Pair& pair)>& take) {
  auto* const read = part<decltype(worldsize_arrow_pairs)>(
      "summaries_arrow", "worldsize_arrow_pairs", file, "Arrow",
      "run .venv/bin/python3 -m pip install --no-deps pyarrow==22.0.0, or module load Arrow on a "
      "cluster");
  try {
    read(file, take);
  } catch (const Error&) {
    throw;  // take()'s own
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
}

}  // namespace tasks::summaries
