#include "judge/build_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "judge/bundle.hpp"
#include "process/build.hpp"
#include "process/descriptor.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// In a piece's folder, beside its text.
constexpr const char *kProgram = "train", *kVersion = "version";
// For bundles, in the project.
constexpr const char* kServed = "checker/src/process/served.hpp";
// More make a bundle no slower to build, but a part that changes costs all of it.
constexpr size_t kBundle = 16;

// Held by whoever builds in this folder.
class Lock {
 public:
  explicit Lock(const fs::path& folder) {
    fs::create_directories(folder);
    file_ = Descriptor(::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    while (::flock(file_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw Error("Cannot lock " + folder.string() + ".");
    }
  }

 private:
  Descriptor file_;
};

}  // namespace

std::string text_of(std::span<const NamedText> files) {
  std::string all;
  for (const auto& file : files) all += file.text;
  return all;
}

fs::path BuildCache::folder_of(const CachedProgram& piece) const {
  return project_.build / "workshop" / piece.name;
}

bool BuildCache::is_built(const CachedProgram& piece) const {
  const auto version = folder_of(piece) / kVersion;
  return fs::exists(folder_of(piece) / kProgram) && fs::exists(version) &&
         trim(read_file(version)) == recipe_.version_of(text_of(piece.files));
}

std::vector<BuildCache::Bundle> BuildCache::bundles_of(const Bundle& pieces) const {
  std::vector<Bundle> bundles, alone;
  for (auto* piece : pieces) {
    if (!piece->serves) {
      alone.push_back({piece});
    } else if (bundles.empty() || bundles.back().size() == kBundle) {
      bundles.push_back({piece});
    } else {
      bundles.back().push_back(piece);
    }
  }
  bundles.insert(bundles.end(), alone.begin(), alone.end());
  return bundles;
}

// Writes what is to be compiled. Returns one shell line that compiles, links and names the program
// in the folder of each piece, to be run in the build folder.
std::string BuildCache::script_of(const Bundle& bundle) const {
  std::vector<fs::path> folders, sources;
  std::vector<std::string> texts;
  for (const auto* piece : bundle) {
    folders.push_back(folder_of(*piece));
    fs::remove_all(folders.back());
    for (const auto& file : piece->files) write_file(folders.back() / file.name, file.text);
    sources.push_back(folders.back() / piece->files.front().name);
    texts.push_back(text_of(piece->files));
  }
  auto source = sources[0];
  if (bundle.front()->serves) {
    source = folders[0] / "bundle.cpp";
    write_file(source, bundle_of(sources, texts, project_.source / kServed));
  }
  const auto object = (folders[0] / "train.o").string(), raw = (folders[0] / "train.new").string();
  auto script =
      recipe_.with(source.string(), object, raw) + " && rm -f " + object + " " + object + ".d";
  for (size_t i = folders.size(); i-- > 0;) {
    const auto program = (folders[i] / kProgram).string();
    script += " && ln -f " + raw + " " + program + " && echo " + recipe_.version_of(texts[i]) +
              " > " + (folders[i] / kVersion).string();
  }
  return script + " && rm -f " + raw;
}

BuildCache::BuildCache(const Project& project, bool builds, std::vector<std::string> targets)
    : project_(project), builds_(builds) {
  if (!builds) return;
  // The replay needs what trainers need as well: the precompiled header and the libraries.
  targets.insert(targets.begin(), "replay");
  if (const auto built = build_quietly(project, targets); !built.success) {
    throw Error("Building " + join(targets, " and ") +
                " failed: " + join(compiler_messages(built.output), " / "));
  }
  recipe_ = recipe_of(project);
}

std::vector<BuildCache::Bundle> BuildCache::build(std::vector<Bundle> bundles) const {
  std::vector<std::vector<Command>> commands;
  for (const auto& bundle : bundles) {
    commands.push_back({Command{.arguments = {"sh", "-c", script_of(bundle)},
                                .environment = {},
                                .directory = project_.build}});
  }
  RankOptions options;
  options.width = std::max(1U, std::thread::hardware_concurrency());
  options.on_line = [&](size_t number, bool, std::string_view line) {
    bundles[number].front()->output.emplace_back(line);
    return true;
  };
  const auto results = run_groups(commands, options);
  std::vector<Bundle> failed;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].interrupted_by) throw Error("Interrupted.");
    if (!results[i].success()) failed.push_back(std::move(bundles[i]));
  }
  return failed;
}

void BuildCache::build(std::span<CachedProgram> pieces) const {
  for (auto& piece : pieces) {
    piece.program = folder_of(piece) / kProgram;
    piece.serves = piece.files.size() == 1 && fits_a_bundle(piece.files.front().text);
    if (!builds_ && !fs::exists(piece.program)) {
      throw Error(piece.name + " was not built. Fix: run it without --no-build.");
    }
  }
  if (!builds_) return;
  const Lock lock(project_.build / "workshop");
  Bundle missing;
  for (auto& piece : pieces) {
    if (!is_built(piece)) missing.push_back(&piece);
  }
  // Where one does not compile, each tells for itself.
  std::vector<Bundle> again;
  for (const auto& bundle : build(bundles_of(missing))) {
    if (bundle.size() == 1) {
      bundle.front()->program.clear();
      continue;
    }
    bundle.front()->output.clear();
    for (auto* piece : bundle) again.push_back({piece});
  }
  for (const auto& bundle : build(std::move(again))) bundle.front()->program.clear();
}

ForkServers servers_of(const Project& project, std::span<const CachedProgram> pieces) {
  // What is read while a program is loaded: by OpenMP, and by the loader.
  ForkServers servers({"OMP_NUM_THREADS=1", "LD_PRELOAD=" + project.file_shim().string()});
  servers.add(project.build / "bin" / "replay");
  for (const auto& piece : pieces) {
    if (piece.serves && !piece.program.empty()) servers.add(piece.program);
  }
  return servers;
}

}  // namespace checker
