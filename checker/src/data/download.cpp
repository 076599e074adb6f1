#include "data/download.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "data/manifest.hpp"
#include "data/place.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "terminal/terminal.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

fs::path part_of(const Wanted& wanted) { return wanted.file.string() + ".part"; }

// Beside the part: which version of the file it is of.
fs::path version_of(const Wanted& wanted) { return part_of(wanted).string() + ".version"; }

uintmax_t size_of(const fs::path& file) {
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  return missing ? 0 : size;
}

bool is_of_this_version(const Wanted& wanted, const Remote& remote) {
  const auto note = version_of(wanted);
  return size_of(part_of(wanted)) <= remote.size && fs::exists(note) &&
         read_file(note) == remote.version;
}

void begin_again(const Wanted& wanted, const Remote& remote) {
  fs::remove(part_of(wanted));
  write_file(version_of(wanted), remote.version);
}

// "1.2 GB, 25.3 MB/s", on terminals.
class Progress {
 public:
  Progress(terminal::Stage& stage, const fs::path& part)
      : stage_(stage), part_(part), before_(size_of(part)) {}

  void tick() {
    const auto now = Clock::now();
    if (now - shown_ < std::chrono::milliseconds(500)) return;
    shown_ = now;
    const auto size = size_of(part_);
    const auto seconds = std::chrono::duration<double>(now - start_).count();
    const auto rate = static_cast<double>(size - std::min(size, before_)) / seconds;
    stage_.note(bytes_of(size) + ", " + bytes_of(static_cast<uintmax_t>(rate)) + "/s");
  }

 private:
  using Clock = std::chrono::steady_clock;

  terminal::Stage& stage_;
  fs::path part_;
  uintmax_t before_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

// Asks again for what is missing as long as that brings something: long downloads break off.
void fetch_rest(const Wanted& wanted, const Remote& remote, Progress& progress) {
  const auto part = part_of(wanted);
  while (size_of(part) < remote.size) {
    const auto before = size_of(part);
    const auto sent = send_rest(wanted.address, part, [&] { progress.tick(); });
    const auto now = size_of(part);
    if (sent == Sent::no_ranges && before > 0) {
      begin_again(wanted, remote);
    } else if (sent == Sent::whole && now < remote.size) {
      break;
    } else if (now <= before) {
      throw Error(wanted.address + ": The server stopped after " + bytes_of(now) + " of " +
                  bytes_of(remote.size) + ". Fix: run the same command, which continues.");
    }
  }
  if (const auto size = size_of(part); size != remote.size) {
    begin_again(wanted, remote);
    throw Error(wanted.address + ": The server sent " + std::to_string(size) +
                " bytes but announced " + std::to_string(remote.size) +
                ", so this is another file. Fix: run the same command again, or name another "
                "server with --from.");
  }
}

void fetch(const Wanted& wanted, const Remote& remote) {
  if (!is_of_this_version(wanted, remote)) begin_again(wanted, remote);
  if (size_of(part_of(wanted)) == remote.size) return;
  terminal::Stage stage("fetching " + wanted.shown + ", " + bytes_of(remote.size));
  Progress progress(stage, part_of(wanted));
  try {
    fetch_rest(wanted, remote, progress);
  } catch (const Error&) {
    stage.failed();
    throw;
  }
  stage.done();
}

[[noreturn]] void refuse(const fs::path& file, const std::string& hash, const std::string& who,
                         const std::string& other, const std::string& otherwise) {
  throw Error(file.string() + ": Its SHA-256 is " + hash + ", but " + who + " " + other +
              ". So it is damaged, or another file. It was kept, but is not used. Fix: remove it "
              "and run the same command" +
              otherwise + ".");
}

// Takes a minute where the file is large.
std::string hash_calmly(const fs::path& file, const std::string& shown) {
  terminal::Stage stage("hashing " + shown);
  auto hash = hash_file(file);
  stage.idle();
  return hash;
}

void expect_hash(const fs::path& file, const std::string& hash, const Wanted& wanted) {
  if (wanted.known_sha256.empty() || wanted.known_sha256 == hash) return;
  refuse(file, hash, wanted.known_from, wanted.known_sha256, wanted.otherwise);
}

}  // namespace

void expect_known(const Wanted& wanted) {
  if (!wanted.known_sha256.empty()) {
    expect_hash(wanted.file, hash_calmly(wanted.file, wanted.shown), wanted);
  }
}

uintmax_t bytes_here(const Wanted& wanted, const Remote& remote) {
  return is_of_this_version(wanted, remote) ? size_of(part_of(wanted)) : 0;
}

std::string download(const Wanted& wanted, const Remote& remote) {
  if (remote.size == 0) {
    throw Error(wanted.address +
                ": The file is empty on the server. Fix: name another server with --from.");
  }
  fetch(wanted, remote);
  const auto hash = hash_calmly(part_of(wanted), wanted.shown);
  if (!remote.sha256.empty() && remote.sha256 != hash) {
    refuse(part_of(wanted), hash, "the server says", remote.sha256, "");
  }
  expect_hash(part_of(wanted), hash, wanted);
  fs::rename(part_of(wanted), wanted.file);
  fs::remove(version_of(wanted));
  return hash;
}

}  // namespace checker::data
