#pragma once
/// What the modules are called by. They link neither torch nor the tasks, so each finds its own
/// library's symbols: libsentencepiece and libtorch_cpu both bring a protobuf, of different
/// versions.
#include <filesystem>
#include <functional>
#include <memory>

#include "../json_lines.hpp"
#include "../tokenizer.hpp"

// They throw std::runtime_error that names the file.
extern "C" {
void worldsize_sentence_pieces(const std::filesystem::path& file,
                               std::shared_ptr<const tasks::summaries::Tokenizer>& tokenizer);
void worldsize_arrow_pairs(const std::filesystem::path& file,
                           const std::function<void(const tasks::summaries::Pair&)>& take);
}
