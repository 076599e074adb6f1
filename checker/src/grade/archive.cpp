#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <memory>

#include "grade/gather.hpp"
#include "support/error.hpp"

namespace checker::grade {

namespace {

constexpr int64_t kMostUnpacked = 256LL << 20;
constexpr size_t kBlock = 64UL << 10;

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

std::string problem(archive* reader) {
  const char* text = archive_error_string(reader);
  return text ? text : "it is damaged";
}

void expect_small(archive* reader) {
  if (archive_filter_bytes(reader, 0) > kMostUnpacked) {
    throw Unreadable("Unpacked it would be larger than 256 MiB. Fix: hand in with ./workbook pack");
  }
}

std::string read_entry(archive* reader) {
  std::string text;
  std::array<char, kBlock> block{};
  while (true) {
    const auto got = archive_read_data(reader, block.data(), block.size());
    if (got < 0) throw Error("cannot be read: " + problem(reader));
    if (got == 0) return text;
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > kLargestText) throw Error("is larger than 1 MiB");
  }
}

// What is not wanted still has to be unpacked to be passed over, except in a zip, and may be
// endless.
void skip_rest(archive* reader) {
  if ((archive_format(reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_ZIP) return;
  std::array<char, kBlock> block{};
  while (archive_read_data(reader, block.data(), block.size()) > 0) expect_small(reader);
}

}  // namespace

bool is_archive(const std::string& name) {
  constexpr std::array<std::string_view, 9> endings{
      ".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".txz", ".tar.zst", ".7z"};
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

Gathered gather_archive(const std::string& file, const std::vector<GradedStep>& steps) {
  const Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  archive_read_support_format_7zip(reader.get());
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlock) != ARCHIVE_OK) {
    throw Unreadable("It is not a readable archive: " + problem(reader.get()) + ".");
  }
  Gatherer gatherer(steps);
  archive_entry* entry = nullptr;
  for (size_t entries = 0;; ++entries) {
    const int status = archive_read_next_header(reader.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN) {
      throw Unreadable("It cannot be read to the end: " + problem(reader.get()) + ".");
    }
    if (entries >= kMostEntries) throw Unreadable("It holds more than 100,000 files.");
    expect_small(reader.get());
    const char* name = archive_entry_pathname(entry);
    if (!name) continue;
    const bool regular = archive_entry_filetype(entry) == AE_IFREG &&
                         !archive_entry_hardlink(entry) && !archive_entry_symlink(entry);
    if (regular) {
      gatherer.offer(name, [&] { return read_entry(reader.get()); });
      skip_rest(reader.get());
    } else if (archive_entry_filetype(entry) != AE_IFDIR) {
      gatherer.offer_other(name, "not a regular file");
    }
  }
  return gatherer.take();
}

}  // namespace checker::grade
