#include <algorithm>
#include <random>

#include "endure/small_run.hpp"
#include "endure/trials.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker::endure {

namespace fs = std::filesystem;

namespace {

// Two checkpoints of one run, the older first, and what their files hold.
struct Pair {
  fs::path older, newer;
  std::vector<std::string> files;

  explicit Pair(const fs::path& folder) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
    if (found.size() != 2)
      throw Error("The run left " + std::to_string(found.size()) + " checkpoints, not two.");
    std::ranges::sort(found);
    older = found[0];
    newer = found[1];
    for (const auto& entry : fs::directory_iterator(newer)) {
      files.push_back(entry.path().filename());
    }
    std::ranges::sort(files);
  }
};

using Random = std::mt19937_64;

size_t below(size_t limit, Random& random) { return random() % std::max<size_t>(1, limit); }

// Something happens to a file's bytes, or to the file. Returns what.
std::string damage(const Pair& pair, const std::string& name, Random& random) {
  const auto file = pair.newer / name;
  auto bytes = read_file(file);
  const auto before = bytes;
  std::string what;
  while (bytes == before) {
    switch (random() % 6) {
      case 0:
        what = "a bit flipped";
        {
          auto& byte = bytes[below(bytes.size(), random)];
          byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << random() % 8));
        }
        break;
      case 1:
        what = "truncated";
        bytes.resize(below(bytes.size(), random));
        break;
      case 2: {
        what = "a block of zeros";
        const auto at = below(bytes.size(), random);
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + 512)),
                  '\0');
        break;
      }
      case 3:
        what = "extra bytes at the end";
        bytes.append(1 + below(100, random), 'x');
        break;
      case 4:
        what = "that of the older checkpoint";
        bytes = read_file(pair.older / name);
        break;
      default:
        fs::remove(file);
        return "missing";
    }
  }
  write_file(file, bytes);
  return what;
}

}  // namespace

Outcome damage_checkpoints(const Options& options) {
  const TemporaryFolder folder;
  const SmallRun run(options, folder.path() / "run");
  run.train_undisturbed(options.ranks);
  Random random(options.seed);
  return make_trials(options, [&](size_t trial) -> std::string {
    const SmallRun damaged(options, folder.path() / ("damaged" + std::to_string(trial)));
    fs::copy(run.checkpoints(), damaged.checkpoints(), fs::copy_options::recursive);
    const Pair pair(damaged.checkpoints());
    const auto& name = pair.files[below(pair.files.size(), random)];
    const auto what = damage(pair, name, random);
    const auto resumed = damaged.train(1);
    fs::remove_all(damaged.checkpoints().parent_path());
    const auto says = [&](const std::string& text) {
      return resumed.said.find(text) != std::string::npos;
    };
    const bool named = says((pair.newer / name).string()) && says(pair.older.filename());
    if (!resumed.success && named) return "";
    return name + ", " + what + ": " + (resumed.success ? "not noticed" : resumed.said);
  });
}

}  // namespace checker::endure
