// What is made of fetched archives.
#include <cerrno>
#include <fstream>
#include <system_error>

#include "data/archive_files.hpp"
#include "data/sets.hpp"
#include "data/xsum.hpp"
#include "support/error.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const NextBytes& next) {
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  for (auto bytes = next(); stream && !bytes.empty(); bytes = next()) stream << bytes;
  stream.close();
  if (stream) return;
  throw Error(file.string() + ": Cannot write it (" + std::generic_category().message(errno) +
              "). Fix: free some space and run the same command.");
}

// Without the folder that holds all in the archive.
fs::path without_first_part(const fs::path& name) {
  fs::path rest;
  for (auto part = std::next(name.begin()); part != name.end(); ++part) rest /= *part;
  return rest;
}

void unpack(const fs::path& archive, const fs::path& into) {
  for_each_file(archive, [&](const std::string& name, const NextBytes& next) {
    if (const auto path = without_first_part(name); !path.empty()) write(into / path, next);
  });
}

}  // namespace

void fill(const Set& set, const fs::path& sources, const fs::path& into) {
  const auto archive = sources / set.sources.at(0).name;
  if (set.sources.size() == 1) {
    unpack(archive, into);
  } else {
    write_articles(archive, sources / set.sources[1].name, into);
  }
}

}  // namespace checker::data
