#include "hostile/attack.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>

#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

std::string socket_name() { return "worldsize-" + std::to_string(::getpid()); }

// On the loopback, at whatever port is free.
int listen_on_loopback(uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, generic, size), 0);
  EXPECT_EQ(::listen(socket, 8), 0);
  EXPECT_EQ(::getsockname(socket, generic, &size), 0);
  port = ::ntohs(address.sin_port);
  return socket;
}

int listen_at_name(const std::string& name) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(socket, 8), 0);
  return socket;
}

bool is_the_hostile_users(const fs::path& process) {
  std::ifstream status(process / "status");
  const auto uid = "Uid:\t" + std::to_string(hostile_user()) + "\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(uid)) return true;
  }
  return false;
}

constexpr const char* kProgram = R"(
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
%before
int main() { %code }
)";

}  // namespace

std::string program_of(const std::string& before, const std::string& main) {
  return replaced(replaced(kProgram, "%before", before), "%code", main);
}

Instructor::Instructor(fs::path folder) : folder_(std::move(folder)) {
  write_file(folder_ / "solution", "answer");
  write_file(folder_ / "solution.hpp", "\"answer\"\n");
  write_file(folder_ / "home" / ".ssh" / "id_ed25519", "a key");
  write_file(folder_ / "class" / "bob" / "02.cpp", "int main() {}");
  write_file(folder_ / "bin" / "checker", "a program");
  write_file(folder_ / "results.db", "results");
  // Nothing but the box keeps anybody out.
  fs::permissions(folder_, fs::perms(0777));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    fs::permissions(entry.path(), fs::perms(0777));
  }
  process_ = ::fork();
  if (process_ == 0) {
    while (true) ::pause();
  }
  listening_ = listen_on_loopback(port_);
  socket_ = listen_at_name(socket_name());
}

Instructor::~Instructor() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  ::close(listening_);
  ::close(socket_);
}

std::string Instructor::filled(std::string text) const {
  const fs::path build = fs::path(PROGRAM_FOLDER).parent_path();
  text = replaced(std::move(text), "INSTRUCTOR", folder_.string());
  text = replaced(std::move(text), "PROCESS", std::to_string(process_));
  text = replaced(std::move(text), "PORT", std::to_string(port_));
  text = replaced(std::move(text), "SOCKET", socket_name());
  text = replaced(std::move(text), "PROJECT", PROJECT_FOLDER);
  return replaced(std::move(text), "BUILD", build.string());
}

std::string Instructor::belongings() const {
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    const bool file = entry.symlink_status().type() == fs::file_type::regular;
    all.push_back(entry.path().string() + (file ? ": " + read_file(entry.path()) : ""));
  }
  std::ranges::sort(all);
  if (::kill(process_, 0) != 0) all.emplace_back("the process is gone");
  return join(all, "\n");
}

Protections without(const std::vector<bool Protections::*>& aims) {
  Protections left;
  for (const auto aim : aims) left.*aim = false;
  // The course may lie in a folder that only root looks into.
  if (!left.sight) left.rights = false;
  return left;
}

uint32_t hostile_user() { return 30'000 + static_cast<uint32_t>(::getpid()) % 30'000; }

std::string left_behind() {
  std::string left;
  std::error_code vanished;
  for (const auto& entry : fs::directory_iterator("/proc", vanished)) {
    if (is_the_hostile_users(entry.path())) left += "process " + entry.path().string() + "\n";
  }
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.starts_with("judgement ")) left += line + "\n";
  }
  return left;
}

void HostileTest::SetUp() {
  BoxedTest::SetUp();
  if (IsSkipped()) return;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to let go of single protections";
}

grade::Task HostileTest::task() const {
  grade::Task task;
  task.hand_in = folder_.path() / "hand-in";
  task.user = hostile_user();
  task.memory = 1536ULL << 20;
  task.running.processor_seconds = 3;
  task.building.processor_seconds = 2;
  task.worlds = {1};
  return task;
}

std::string HostileTest::judged(grade::Task task) const {
  const TemporaryFolder work;
  fs::permissions(work.path(), fs::perms(0755));
  const auto said = folder_.path() / "said";
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::setenv("COURSE_TOKEN", "secret", 1);
    std::string all;
    task.work = work.path();
    task.say = [&](const std::string& line) { all += line + "\n"; };
    Project project;
    project.source = PROJECT_FOLDER;
    project.build = fs::path(PROGRAM_FOLDER).parent_path();
    int status = 1;
    try {
      status = grade::work_on(project, task) ? 0 : 1;
    } catch (const std::exception& error) {
      all += error.what();
    }
    write_file(said, all);
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(worker, &status, 0);
  auto all = read_file(said);
  EXPECT_EQ(status, 0) << all;
  fs::remove(said);
  return all;
}

std::string HostileTest::judged(const std::string& program, const Protections& protections,
                                bool built_once) const {
  write_file(folder_.path() / "hand-in" / "02.cpp", program);
  auto what = task();
  what.protections = protections;
  if (built_once) {
    what.programs = folder_.path() / "programs";
    fs::create_directories(what.programs);
  }
  return judged(std::move(what));
}

void HostileTest::expect_no_points(const std::string& said) {
  EXPECT_THAT(said, HasSubstr("{\"finished\":true"));
  EXPECT_THAT(said, Not(HasSubstr("\"state\":\"done\"")));
  EXPECT_EQ(left_behind(), "");
}

}  // namespace checker::testing
