#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "doctor/doctor.hpp"
#include "support/text.hpp"

namespace checker::doctor {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30, kMiB = uint64_t{1} << 20;

std::string gib(uint64_t bytes) { return std::to_string(bytes / kGiB) + " GB free"; }

HealthCheck disk(const fs::path& folder) {
  struct statvfs space = {};
  if (::statvfs(folder.c_str(), &space) != 0) {
    return {"disk", Health::bad, folder.string() + " cannot be read", "is it still mounted?"};
  }
  const auto bytes = uint64_t{space.f_bavail} * space.f_frsize;
  // Some file systems make inodes as they need them and count none.
  const bool inodes = space.f_files == 0 || space.f_favail >= 10'000;
  const auto text = gib(bytes) + " in " + folder.string();
  if (bytes >= 2 * kGiB && inodes) return {"disk", Health::good, text};
  return {"disk", Health::bad,
          inodes ? text + ", and a build takes 2"
                 : "only " + std::to_string(space.f_favail) + " more files allowed",
          "free some space, or move the project to another disk (on a cluster: project or scratch, "
          "not home)."};
}

// Gloo and NCCL put what ranks of one node share there.
HealthCheck shared_memory() {
  struct statvfs space = {};
  if (::statvfs("/dev/shm", &space) != 0) {
    return {"/dev/shm", Health::bad, "is not there",
            "a container needs --shm-size=1g or --ipc=host."};
  }
  const auto bytes = uint64_t{space.f_bavail} * space.f_frsize;
  const auto text = std::to_string(bytes / kMiB) + " MB free";
  if (bytes >= 256 * kMiB) return {"/dev/shm", Health::good, text};
  return {"/dev/shm", Health::bad, text + "; ranks on GPUs share data there",
          "remove files of dead programs; a container needs --shm-size=1g or --ipc=host."};
}

// A limit, counted in so many.
std::string shown(rlim_t limit, rlim_t unit = 1) {
  return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit / unit);
}

HealthCheck limits() {
  rlimit files{}, memory{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &memory);
  const auto text = shown(files.rlim_cur) + " open files, locked memory " +
                    shown(memory.rlim_cur, kMiB) + (memory.rlim_cur == RLIM_INFINITY ? "" : " MB");
  if (files.rlim_cur < 1024) {
    return {"limits", Health::bad, text,
            "ulimit -n 4096: each rank keeps a connection to every other rank."};
  }
  std::error_code ignored;
  const bool infiniband = fs::exists("/sys/class/infiniband", ignored) &&
                          !fs::is_empty("/sys/class/infiniband", ignored);
  if (infiniband && memory.rlim_cur < kGiB) {
    return {"limits", Health::bad, text + ", too little for NCCL over InfiniBand",
            "ulimit -l unlimited, in the job too; Slurm: PropagateResourceLimitsExcept=MEMLOCK."};
  }
  return {"limits", Health::good, text};
}

// File times come from the file server: where its clock is another, ninja builds too much or too
// little, and munge refuses what seems to come from the future.
HealthCheck clock(const fs::path& folder) {
  auto name = (folder / ".clock-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) {
    return {"clock", Health::absent,
            "not compared: " + folder.string() + " cannot be written here"};
  }
  struct stat seen = {};
  ::fstat(file, &seen);
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  ::close(file);
  ::unlink(name.c_str());
  const double apart = now - (static_cast<double>(seen.st_mtim.tv_sec) +
                              1e-9 * static_cast<double>(seen.st_mtim.tv_nsec));
  if (std::abs(apart) < 2) return {"clock", Health::good, "agrees with the file system's clock"};
  return {"clock", Health::bad,
          format_seconds(std::abs(apart)) + (apart > 0 ? " ahead of" : " behind") +
              " the file system's clock",
          "sudo timedatectl set-ntp true; on a cluster, tell the administrators."};
}

}  // namespace

std::vector<HealthCheck> examine_machine(const Place& place) {
  const auto& folder = place.project.build;
  return {disk(folder), shared_memory(), limits(), clock(folder)};
}

Place this_place(const Project& project) {
  return {project, std::getenv("SLURM_JOB_ID") != nullptr};
}

}  // namespace checker::doctor
