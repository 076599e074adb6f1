#include "data/archive_files.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <memory>

#include "support/error.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

constexpr size_t kBlock = 64UL << 10;

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

[[noreturn]] void fail(const fs::path& file, const std::string& why) {
  throw Error(file.string() + ": " + why + " Fix: remove this file and run the same command.");
}

std::string problem(archive* reader) {
  const char* text = archive_error_string(reader);
  return std::string("The archive is damaged (") + (text ? text : "no more is known") + ").";
}

Reader open(const fs::path& file) {
  Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlock) != ARCHIVE_OK) {
    fail(file, problem(reader.get()));
  }
  return reader;
}

// Names that stay inside, and that sha256sum writes as they are.
bool is_harmless(const fs::path& name) {
  const auto leads_up = [](const fs::path& part) { return part == ".."; };
  const auto is_odd = [](unsigned char c) { return c < ' ' || c == '\\' || c == 127; };
  return !name.empty() && name.is_relative() && std::ranges::none_of(name, leads_up) &&
         std::ranges::none_of(name.string(), is_odd);
}

std::string name_of(archive_entry* entry, const fs::path& file) {
  const char* text = archive_entry_pathname(entry);
  if (!text || !is_harmless(text)) {
    fail(file, std::string("It holds a file with the name \"") + (text ? text : "") +
                   "\", which may be outside the folder.");
  }
  const bool is_link = archive_entry_hardlink(entry) || archive_entry_symlink(entry);
  const auto type = archive_entry_filetype(entry);
  if (is_link || (type != AE_IFREG && type != AE_IFDIR)) {
    fail(file, std::string("In it, ") + text + " is a link or a device, not a file.");
  }
  return fs::path(text).lexically_normal().string();
}

}  // namespace

void for_each_file(const fs::path& archive_file,
                   const std::function<void(const std::string&, const NextBytes&)>& take) {
  const auto reader = open(archive_file);
  std::array<char, kBlock> block{};
  const NextBytes next = [&]() -> std::string_view {
    const auto got = archive_read_data(reader.get(), block.data(), block.size());
    if (got < 0) fail(archive_file, problem(reader.get()));
    return {block.data(), static_cast<size_t>(got)};
  };
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) return;
    if (status < ARCHIVE_WARN) fail(archive_file, problem(reader.get()));
    const auto name = name_of(entry, archive_file);
    if (archive_entry_filetype(entry) == AE_IFREG) take(name, next);
  }
}

}  // namespace checker::data
