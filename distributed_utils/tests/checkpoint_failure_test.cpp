// Saves that fail, on one rank or all: the same Error everywhere, and the former checkpoint as good
// as it was.
#include <ATen/record_function.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): SIGXFSZ is POSIX's
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"
#include "same_error.hpp"
#include "small_run.hpp"

namespace distributed_utils {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

TEST(FailingSave, OfOneRankIsTheSameErrorOnAll) {
  ranks::run(3, [] {
    const World world = setup();
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    const auto type = world.rank == 2 ? torch::kComplexFloat : torch::kFloat;
    EXPECT_THAT(error_of_all_ranks([&] {
                  run.save(2, {{"z", torch::zeros({1}, type)}});
                }),
                AllOf(HasSubstr("rank 2: "), HasSubstr("no type for 'state.z'")));
    run.expect_newest(1);
    run.save(2);
    run.expect_newest(2);
  });
}

TEST(FailingSave, OfDifferentStepsIsAnError) {
  ranks::run(3, [] {
    const World world = setup();
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    EXPECT_THAT(error_of_all_ranks([&] { run.save(world.rank == 1 ? 3 : 2); }),
                HasSubstr("rank 0 saves step 2, but rank 1 saves step 3"));
    run.expect_newest(1);
  });
}

/// Files of this process can grow to so many bytes only.
void limit_files(rlim_t bytes) {
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(FailingSave, BeyondALimitOfFileSizes) {
  ranks::run(3, [] {
    const World world = setup();
    signal(SIGXFSZ, SIG_IGN);
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    for (const int unlucky : {0, 1, 2}) {
      const std::string message = error_of_all_ranks([&] {
        if (world.rank == unlucky) limit_files(1000);
        try {
          run.save(2, {{"more", torch::zeros({1000})}});
        } catch (const Error&) {
          limit_files(RLIM_INFINITY);
          throw;
        }
      });
      EXPECT_THAT(message, AllOf(HasSubstr("rank " + std::to_string(unlucky) + ": "),
                                 HasSubstr("File too large")));
      run.expect_newest(1);
    }
  });
}

bool mount_small_disk(const fs::path& path) {
  // In a namespace of this process and those that join it, so that it ends with them.
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m") == 0;
}

bool can_mount() {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(mount_small_disk(folder.path()) ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

void join_mounts_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/ns/mnt";
  const int mounts = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // A process with threads may join only with a root and current folder of its own.
  ASSERT_EQ(unshare(CLONE_FS), 0);
  ASSERT_EQ(setns(mounts, CLONE_NEWNS), 0) << strerror(errno);
  close(mounts);
}

TEST(FailingSave, OnAFullDisk) {
  if (!ranks::is_rank() && !can_mount()) GTEST_SKIP() << "needs leave to mount a small disk";
  ranks::run(3, [] {
    const fs::path disk = ranks::shared_folder() / "disk";
    const fs::path owner = ranks::shared_folder() / "owner";
    const bool mounts = std::string(std::getenv("RANK")) == "0";
    if (mounts) {
      fs::create_directory(disk);
      ASSERT_TRUE(mount_small_disk(disk));
      std::ofstream(owner) << getpid();
    }
    ranks::meet(3);
    pid_t process = 0;
    std::ifstream(owner) >> process;
    if (!mounts) join_mounts_of(process);
    setup();
    SmallRun run(disk / "checkpoints");
    std::string message;
    int64_t step = 0;
    while (message.empty() && step < 40) {
      // A little more on each rank every time.
      const StateDict more = {{"more", torch::zeros({++step * 4096})}};
      message = error_of_all_ranks([&] { run.save(step, more); });
    }
    EXPECT_GT(step, 3);
    EXPECT_THAT(message, HasSubstr("No space left on device"));
    run.expect_newest(step - 1);
    run.save(step);
    run.expect_newest(step);
  });
}

/// From now on, the kernel refuses what is written in pieces of more than a page, as it does where
/// a quota is used up.
void use_up_quota() {
  const auto at = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  std::array<sock_filter, 6> filter{
      at(offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
      at(offsetof(seccomp_data, args[2])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 4096, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDQUOT),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), 0);
}

TEST(FailingSave, BeyondAQuota) {
  ranks::run(3, [] {
    const World world = setup();
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    if (world.rank == 1) use_up_quota();
    EXPECT_THAT(error_of_all_ranks([&] {
                  run.save(2, {{"more", torch::zeros({100'000})}});
                }),
                AllOf(HasSubstr("rank 1: "), HasSubstr("Disk quota exceeded")));
    run.expect_newest(1);
  });
}

/// What root could write nevertheless: as another user, who owns nothing here.
class AsNobody {
 public:
  AsNobody() : was_(geteuid()) {
    if (was_ == 0) EXPECT_EQ(seteuid(65534), 0);
  }
  ~AsNobody() { EXPECT_EQ(seteuid(was_), 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t was_;
};

TEST(FailingSave, IntoAReadOnlyDirectory) {
  ranks::run(3, [] {
    const World world = setup();
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    if (world.rank == 0) {
      fs::permissions(ranks::shared_folder(), fs::perms(0755));
      fs::permissions(run.directory, fs::perms(0555));
    }
    barrier();
    const std::string message = error_of_all_ranks([&] {
      const AsNobody nobody;
      run.save(2);
    });
    EXPECT_THAT(message, AllOf(HasSubstr("rank 0: " + run.directory.string()),
                               HasSubstr("Permission denied")));
    barrier();
    if (world.rank == 0) fs::permissions(run.directory, fs::perms(0755));
    barrier();
    run.expect_newest(1);
    run.save(2);
    run.expect_newest(2);
  });
}

TEST(FailingSave, OfAFirstCheckpointWhereNoneCanBe) {
  ranks::run(2, [] {
    setup();
    SmallRun run("/dev/null/checkpoints");
    EXPECT_THAT(error_of_all_ranks([&] { run.save(1); }),
                HasSubstr("rank 0: /dev/null/checkpoints: cannot make it: Not a directory"));
  });
}

TEST(FailingSave, WhenTheDirectoryIsGoneBetweenTwoSaves) {
  ranks::run(3, [] {
    const World world = setup();
    SmallRun run(ranks::shared_folder() / "checkpoints");
    run.save(1);
    if (world.rank == 0) fs::rename(run.directory, ranks::shared_folder() / "elsewhere");
    barrier();
    EXPECT_THAT(error_of_all_ranks([&] { run.save(2); }),
                HasSubstr("checkpoints: has disappeared"));
    EXPECT_FALSE(fs::exists(run.directory));
    barrier();
    if (world.rank == 0) fs::rename(ranks::shared_folder() / "elsewhere", run.directory);
    barrier();
    run.save(2);
    run.expect_newest(2);
  });
}

/// Takes the directory away when this rank begins the n-th gather from now.
class TakeAway {
 public:
  TakeAway(int n, const fs::path& what) {
    left_ = n;
    what_ = what;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          const bool gathers = std::string_view(function.name()) == "c10d::_allgather_base_";
          if (gathers && --left_ == 0) fs::remove_all(what_);
          return nullptr;
        }));
  }
  ~TakeAway() { at::removeCallback(handle_); }
  TakeAway(const TakeAway&) = delete;
  TakeAway& operator=(const TakeAway&) = delete;

  static int left() { return left_; }

 private:
  static inline int left_ = 0;
  static inline fs::path what_;
  at::CallbackHandle handle_;
};

TEST(FailingSave, WhenTheDirectoryGoesDuringASave) {
  ranks::run(3, [] {
    const World world = setup();
    int failures = 0;
    for (int gather = 1; gather <= 6; ++gather) {
      SmallRun run(ranks::shared_folder() / ("checkpoints." + std::to_string(gather)));
      run.save(1);
      const TakeAway away(world.rank == 0 ? gather : 0, run.directory);
      const std::string message = error_of_all_ranks([&] { run.save(2); });
      if (world.rank == 0) EXPECT_LE(TakeAway::left(), 0) << "there are fewer gathers";
      // After the last but one, that of what the commit came to, all was well when it was saved.
      EXPECT_EQ(message.empty(), gather > 4) << gather << ": " << message;
      failures += message.empty() ? 0 : 1;
    }
    EXPECT_EQ(failures, 4);
  });
}

}  // namespace
}  // namespace distributed_utils
