#include "lab/registry.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "lab/isolation.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view suffix = ".lab";

fs::path registry() {
  const char* folder = std::getenv("WORLDSIZE_LABS");
  return folder && *folder ? folder : "/run/worldsize-lab";
}

fs::path file_of(const std::string& name) { return registry() / (name + std::string(suffix)); }

Descriptor open_file(const fs::path& file) {
  return Descriptor(
      checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644), "write " + file.string()));
}

// While it lives nobody else starts a lab or sweeps.
class Turn {
 public:
  Turn() {
    std::error_code error;
    fs::create_directories(registry(), error);
    // Whatever our umask: munge wants its socket to be reached by everybody.
    if (!error) fs::permissions(registry(), fs::perms(0755), error);
    if (error) throw Error("Cannot make " + registry().string() + ": " + error.message() + ".");
    lock_ = open_file(registry() / "turn");
    checked(::flock(lock_.get(), LOCK_EX), "lock " + (registry() / "turn").string());
  }

 private:
  Descriptor lock_;
};

std::vector<std::string> recorded_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(registry())) {
    if (entry.path().extension() == suffix) names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

// Removes what dead labs left: the processes, mounts and networks went with their first process.
void sweep() {
  for (const auto& name : recorded_names()) {
    const auto file = open_file(file_of(name));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code ignored;
    fs::remove(lab_folder(name), ignored);
    fs::remove(file_of(name), ignored);
  }
}

std::string free_name() {
  for (size_t number = 1;; ++number) {
    auto name = "lab" + std::to_string(number);
    if (!fs::exists(file_of(name))) return name;
  }
}

void check_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (name.size() <= 30 && std::ranges::all_of(name, fits)) return;
  throw Error("Bad name for a lab: " + name +
              ": a name is at most 30 lower-case letters, digits and -.");
}

}  // namespace

fs::path lab_folder(const std::string& name) { return registry() / name; }

LabClaim claim_lab(const std::string& wanted) {
  check_name(wanted);
  const Turn turn;
  sweep();
  const auto name = wanted.empty() ? free_name() : wanted;
  if (fs::exists(file_of(name))) {
    throw Error("A lab already exists: " + name + ". Fix: ./workbook lab down " + name +
                ", or give this one another name.");
  }
  LabClaim claim{name, open_file(file_of(name))};
  checked(::flock(claim.lock.get(), LOCK_EX | LOCK_NB), "lock " + file_of(name).string());
  std::error_code error;
  fs::create_directory(lab_folder(name), error);
  if (error) throw Error("Cannot make " + lab_folder(name).string() + ": " + error.message() + ".");
  return claim;
}

void record_lab(const LabRecord& lab) {
  const auto text = std::to_string(lab.first_process) + " " + std::to_string(lab.nodes) + " " +
                    std::to_string(lab.stays) + "\n";
  // Over the old text, which is as long: another file would have no lock.
  const auto file = open_file(file_of(lab.name));
  checked(static_cast<int>(::pwrite(file.get(), text.data(), text.size(), 0)),
          "write " + file_of(lab.name).string());
}

std::vector<LabRecord> present_labs() {
  if (!fs::exists(registry())) return {};
  const Turn turn;
  sweep();
  std::vector<LabRecord> labs;
  for (const auto& name : recorded_names()) {
    LabRecord lab{.name = name};
    std::istringstream(read_file(file_of(name))) >> lab.first_process >> lab.nodes >> lab.stays;
    labs.push_back(lab);
  }
  return labs;
}

}  // namespace checker
