#pragma once
/// XSum's archive has one file for each article, and a second file tells which split it is in.
#include <filesystem>
#include <string>
#include <string_view>

namespace checker::data {

struct Article {
  std::string document, summary;
};

/// Of an article's file: the summary is its first sentence, the document what follows. Lines that
/// the BBC's pages have for sharing are left out, and blank ones, as the Hugging Face hub's loader
/// does (https://huggingface.co/datasets/EdinburghNLP/xsum). Throws Error if it has other parts.
Article read_article(std::string_view text);

/// Writes train.jsonl, validation.jsonl and test.jsonl into the folder: lines with the strings
/// document, summary and id, in the archive's order. Throws Error for an article that is missing.
void write_articles(const std::filesystem::path& archive, const std::filesystem::path& splits,
                    const std::filesystem::path& into);

}  // namespace checker::data
