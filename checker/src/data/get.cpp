#include "data/get.hpp"

#include <algorithm>

#include "data/announce.hpp"
#include "data/download.hpp"
#include "data/get_years.hpp"
#include "data/manifest.hpp"
#include "data/place.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTrust = ", or add --trust if you know that this file is good";

std::string base_of(const Source& source, const Request& request) {
  return request.from.empty() ? source.base : request.from;
}

Wanted wanted(const Source& source, const Request& request, const Place& place) {
  return {.address = base_of(source, request) + "/" + source.name,
          .file = place.unfinished() / source.name,
          .shown = source.name,
          .known_sha256 = request.trust ? "" : source.sha256,
          .known_from = source.publisher_of_it + " publishes",
          .otherwise = kTrust};
}

// The archives, into .part.
void fetch_sources(const Set& set, const Request& request, const Place& place) {
  Amount amount{.from = base_of(set.sources[0], request)};
  std::vector<std::pair<Wanted, Remote>> missing;
  for (const auto& source : set.sources) {
    const auto file = wanted(source, request, place);
    if (fs::exists(file.file)) {
      expect_known(file);
      amount.beside += fs::file_size(file.file);
      continue;
    }
    missing.emplace_back(file, ask(file.address));
    amount.all += missing.back().second.size;
    amount.here += bytes_here(file, missing.back().second);
  }
  amount.beside =
      static_cast<uintmax_t>(static_cast<double>(amount.beside + amount.all) * set.growth);
  announce(set, request, amount, place);
  for (const auto& [file, remote] : missing) download(file, remote);
  terminal::say(request.trust ? "The archives' SHA-256 were not compared, because of --trust."
                              : "The archives have the published SHA-256.");
}

// .part/unpacked and .part/manifest.sha256, which is there only if they are complete.
void unpack(const Set& set, const Place& place) {
  const auto unpacked = place.unfinished() / "unpacked";
  fs::remove_all(unpacked);
  fs::create_directories(unpacked);
  terminal::Stage stage("unpacking");
  try {
    fill(set, place.unfinished(), unpacked);
  } catch (const Error&) {
    stage.failed();
    throw;
  }
  const auto files = files_below(unpacked);
  const auto manifest = hash_files(unpacked, files, [&](size_t done) {
    stage.note("hash " + std::to_string(done) + " of " + std::to_string(files.size()));
  });
  write_manifest(place.unfinished() / kManifest, manifest);
  stage.done();
}

// The manifest comes last: where it is, all files are. After a break the rest is moved.
void move_out(const Place& place) {
  std::vector<fs::path> ready;
  for (const auto& entry : fs::directory_iterator(place.unfinished() / "unpacked")) {
    ready.push_back(entry.path());
  }
  for (const auto& path : ready) fs::rename(path, place.folder() / path.filename());
  fs::rename(place.unfinished() / kManifest, place.folder() / kManifest);
}

void get_archives(const Set& set, const Request& request, Place& place) {
  if (fs::exists(place.folder() / kManifest)) {
    terminal::say(set.name + " was fetched before. ./workbook data " + set.name +
                  " --verify checks whether it is complete.");
  } else {
    if (!fs::exists(place.unfinished() / kManifest)) {
      if (place.holds_something()) {
        throw Error(
            place.folder().string() + ": This folder has files, but no " + kManifest +
            " among them. Fix: choose another folder, --into FOLDER, or move the files away.");
      }
      fetch_sources(set, request, place);
      unpack(set, place);
    }
    move_out(place);
  }
  place.clean_up();
}

}  // namespace

fs::path usual_folder(const Set& set) { return cache_folder() / set.name; }

std::string training_command(const Set& set, const fs::path& folder) {
  return "./workbook run 06 --solution -- " + set.options + " --data " +
         shell_quote(folder.string());
}

void get(const Set& set, const Request& request) {
  expect_curl();
  Place place(request.folder);
  try {
    if (set.has_years) {
      get_years(set, request, place);
    } else {
      get_archives(set, request, place);
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(error.path1().string() + ": " + error.code().message() +
                ". Fix: check the folder's owner and the free space on its disk, then run the same "
                "command, which continues; or choose another folder: --into FOLDER.");
  }
  const auto files = read_manifest(place.folder() / kManifest).size();
  terminal::say(place.folder().string() + " holds " + count_of(files, "file") +
                ", and their SHA-256 in " + kManifest + ".");
  terminal::say("Train on it: " + training_command(set, place.folder()));
}

bool verify(const Set& set, const fs::path& folder) {
  const auto manifest = read_manifest(folder / kManifest);
  if (manifest.empty()) {
    throw Error(folder.string() + ": There is no " + kManifest +
                ", so there is nothing to compare with. Fix: ./workbook data " + set.name +
                " fetches the set; --into FOLDER says where it is.");
  }
  terminal::Stage stage("comparing " + count_of(manifest.size(), "file"));
  const auto damage = compare(manifest, folder, [&](size_t done) {
    stage.note(std::to_string(done) + " of " + std::to_string(manifest.size()));
  });
  if (damage.missing.empty() && damage.changed.empty()) {
    stage.done();
    return true;
  }
  stage.failed();
  for (const auto& path : damage.missing) terminal::say("  missing: " + path);
  for (const auto& path : damage.changed) terminal::say("  damaged: " + path);
  const std::string fix = set.has_years
                              ? "remove the damaged files and run the download command again"
                              : "remove the folder and fetch the set again";
  terminal::complain(folder.string() + ": " + count_of(damage.missing.size(), "file") +
                     " missing, " + std::to_string(damage.changed.size()) +
                     " damaged. Fix: " + fix + ".");
  return false;
}

}  // namespace checker::data
