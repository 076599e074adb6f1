#pragma once
/// Loads the parts that read formats with other people's libraries. Each is a module of its own,
/// which is loaded when such a file is named: built-in data and JSON lines need none of them.
#include <filesystem>
#include <functional>
#include <memory>

#include "json_lines.hpp"
#include "tokenizer.hpp"

namespace tasks::summaries {

/// The SentencePiece model in a file, such as T5's spiece.model. Throws Error that names the file
/// if it is damaged, or numbers <pad>, <eos> and <unk> unlike T5; and where SentencePiece is
/// missing.
std::shared_ptr<const Tokenizer> load_sentence_pieces(const std::filesystem::path& file);

/// As for_each_pair, for an Arrow file with the columns "document" and "summary"
/// (https://arrow.apache.org/docs/format/Columnar.html): a stream, as Hugging Face's datasets keeps
/// its cache, or a file with a footer. It is mapped into memory, and nothing is copied. Throws
/// Error that names the file if it is damaged or has no such columns; and where Arrow is missing.
void for_each_arrow_pair(const std::filesystem::path& file,
                         const std::function<void(const Pair& pair)>& take);

}  // namespace tasks::summaries
