#include "data/get_years.hpp"

#include "data/announce.hpp"
#include "data/download.hpp"
#include "data/manifest.hpp"
#include "data/years.hpp"
#include "support/error.hpp"
#include "terminal/terminal.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

struct Missing {
  std::string path;  // in the set's folder
  Wanted wanted;
  Remote remote;
};

Wanted wanted(const std::string& base, const std::string& path, const Place& place,
              const Manifest& manifest) {
  const auto known = manifest.find(path);
  return {.address = base + "/" + path,
          .file = place.unfinished() / path,
          .shown = path,
          .known_sha256 = known == manifest.end() ? "" : known->second,
          .known_from = "in the first download it was",
          .otherwise = std::string(", or take its line out of ") + kManifest +
                       " if the publisher has replaced the file"};
}

// A file that somebody else put there is taken if its size is right.
void adopt(const Missing& missing, const Place& place, Manifest& manifest) {
  const auto file = place.folder() / missing.path;
  if (fs::file_size(file) != missing.remote.size) {
    throw Error(file.string() + ": It has " + std::to_string(fs::file_size(file)) +
                " bytes, the server's file has " + std::to_string(missing.remote.size) +
                ". Fix: move it away and run the same command.");
  }
  manifest[missing.path] = hash_file(file);
}

void fetch(const Missing& missing, const Place& place, Manifest& manifest) {
  const auto file = place.folder() / missing.path;
  fs::create_directories(file.parent_path());
  if (fs::exists(file)) {
    adopt(missing, place, manifest);
  } else {
    manifest[missing.path] = download(missing.wanted, missing.remote);
    fs::rename(missing.wanted.file, file);
  }
  write_manifest(place.folder() / kManifest, manifest);
}

}  // namespace

void get_years(const Set& set, const Request& request, Place& place) {
  if (request.years.empty()) {
    throw UsageError("Which years? A year takes " + set.size.substr(0, set.size.find(" a ")) +
                     ": --years 1990,1991 takes two.");
  }
  const auto base = request.from.empty() ? set.sources[0].base : request.from;
  auto manifest = read_manifest(place.folder() / kManifest);
  Amount amount{.from = base};
  std::vector<Missing> missing;
  for (const auto& path : files_of_years(base, request.years)) {
    const bool is_here = fs::exists(place.folder() / path);
    if (is_here && manifest.contains(path)) continue;
    auto file = wanted(base, path, place, manifest);
    auto remote = ask(file.address);
    amount.all += remote.size;
    amount.here += is_here ? remote.size : bytes_here(file, remote);
    missing.push_back({path, std::move(file), std::move(remote)});
  }
  if (missing.empty()) {
    terminal::say("Everything was fetched before.");
  } else {
    announce(set, request, amount, place);
    terminal::say(
        "Nobody publishes hashes of these files. The first download is trusted, and --verify "
        "compares with it.");
  }
  for (const auto& file : missing) fetch(file, place, manifest);
  place.clean_up();
}

}  // namespace checker::data
