#include "judge/symbols.hpp"

#include <sys/stat.h>

#include <charconv>
#include <optional>
#include <sstream>

#include "judge/shown_file.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

struct AddressRange {
  uint64_t begin = 0, end = 0;
};

uint64_t hexadecimal(const std::string& text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// The fifth column of a line of /proc/PID/maps. A file may have several names.
std::string inode_in(const std::string& line) {
  std::istringstream columns(line);
  std::string column;
  for (int i = 0; i < 5; ++i) columns >> column;
  return column;
}

// Where the program itself lies in the process: its first mapping tells its base.
AddressRange address_range_of(const RankSeen& rank, const std::string& inode) {
  AddressRange all;
  for (const auto& event : rank.log.events) {
    if (event.kind != Kind::maps) continue;
    for (const auto& line : split_lines(event.payload)) {
      if (inode_in(line) != inode) continue;
      const auto dash = line.find('-');
      const auto begin = hexadecimal(line.substr(0, dash));
      if (all.begin == 0) all.begin = begin;
      all.end = hexadecimal(line.substr(dash + 1));
    }
    break;
  }
  return all;
}

}  // namespace

Symbols::Symbols(std::filesystem::path program, std::filesystem::path source, std::string shown,
                 const Box* box)
    : program_(std::move(program)),
      source_(std::move(source)),
      shown_(std::move(shown)),
      box_(box) {
  struct stat about {};
  if (::stat(program_.c_str(), &about) == 0) inode_ = std::to_string(about.st_ino);
}

std::string Symbols::locate(const RankSeen& rank, const CollectiveSeen& collective) {
  const auto mapping = address_range_of(rank, inode_);
  std::vector<uint64_t> offsets;
  for (const uint64_t address : collective.frames) {
    // A return address belongs to the line after the call; one byte before it is the call.
    if (address > mapping.begin && address < mapping.end) {
      offsets.push_back(address - mapping.begin - 1);
    }
  }
  if (offsets.empty()) return "";
  const auto [found, added] = known_.try_emplace(offsets);
  if (added) found->second = line_of(offsets);
  return found->second;
}

std::string Symbols::line_of(const std::vector<uint64_t>& offsets) {
  Command command;
  command.arguments = {"addr2line", "-i", "-e", program_.string()};
  for (const uint64_t offset : offsets) {
    std::ostringstream text;
    text << "0x" << std::hex << offset;
    command.arguments.push_back(text.str());
  }
  if (box_) {
    command = box_->wrap(command, {.read_only = {program_}, .writable = {}, .scratch = {}});
  }
  std::string line_found;
  RankOptions options;
  options.on_line = [&](size_t, bool is_error, std::string_view line) {
    const auto colon = line.rfind(':');
    if (is_error || colon == line.npos || !line_found.empty()) return true;
    const auto file = shown_beside(line.substr(0, colon), source_, shown_);
    if (!file) return true;
    const auto number = line.substr(colon + 1);
    line_found = *file + ":" + std::string(number.substr(0, number.find(' ')));
    return true;
  };
  try {
    run_ranks({&command, 1}, options);
  } catch (const Error&) {  // no addr2line here
  }
  return line_found;
}

}  // namespace checker
