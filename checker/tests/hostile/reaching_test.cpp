// What programs reach for while they run: what they may not see and may not touch. What the same
// protections keep away is tried by one program, each attempt in a process of its own.
#include "hostile/attack.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;
using P = Protections;

struct Attempt {
  const char* name;
  const char* code;        ///< of a function; it returns 77 if it got what it wanted
  const char* trace = "";  ///< a file that is there if harm was done; empty: the 77 tells
};

struct Reaching {
  const char* name;
  std::vector<bool Protections::*> aims;  ///< what keeps it from doing harm
  std::vector<Attempt> attempts;          ///< seven at most, bits of an exit status
};

void PrintTo(const Reaching& reaching, std::ostream* out) { *out << reaching.name; }

const Reaching kReaching[] = {
    {"ReadsWhatIsTheInstructors",
     {&P::sight},
     {{"reads the solution",
       R"(std::string text; std::ifstream("INSTRUCTOR/solution") >> text;
          return text == "answer" ? 77 : 0;)"},
      {"lists the instructor's folder",
       R"(std::error_code no; const std::filesystem::directory_iterator none;
          return std::filesystem::directory_iterator("INSTRUCTOR", no) != none ? 77 : 0;)"},
      {"reads another hand-in", R"(return std::ifstream("INSTRUCTOR/class/bob/02.cpp") ? 77 : 0;)"},
      {"reads the instructor's key",
       R"(return std::ifstream("INSTRUCTOR/home/.ssh/id_ed25519") ? 77 : 0;)"},
      {"reads the results", R"(return std::ifstream("INSTRUCTOR/results.db") ? 77 : 0;)"}}},
    {"ReadsTheCourseAndTheSystem",
     {&P::sight},
     {{"reads the course",
       R"(return std::filesystem::exists("PROJECT/checker/chapters") ? 77 : 0;)"},
      {"reads the build folder", R"(return std::ifstream("BUILD/CMakeCache.txt") ? 77 : 0;)"},
      {"reads the system's users", R"(return std::ifstream("/etc/passwd") ? 77 : 0;)"}}},
    {"WritesOutside",
     {&P::sight},
     {{"writes into the results",
       R"(return std::ofstream("INSTRUCTOR/results.db") << "1000 points" ? 77 : 0;)"},
      {"replaces the checker",
       R"(std::filesystem::remove("INSTRUCTOR/bin/checker");
          std::filesystem::create_symlink("/bin/true", "INSTRUCTOR/bin/checker"); return 77;)"},
      {"leaves a library for the next one",
       R"(std::ofstream("/tmp/worldsize-SOCKET-libtorch_cpu.so") << "not torch"; return 0;)",
       "/tmp/worldsize-SOCKET-libtorch_cpu.so"},
      {"leaves a file in shared memory",
       R"(std::ofstream("/dev/shm/worldsize-SOCKET") << "for a friend"; return 0;)",
       "/dev/shm/worldsize-SOCKET"}}},
    {"ReachesForAnotherProcess",
     {&P::processes, &P::rights},
     {{"finds the solution through /proc",
       R"(std::string text; std::ifstream("/proc/PROCESS/root/INSTRUCTOR/solution") >> text;
          return text == "answer" ? 77 : 0;)"},
      {"reads its memory", R"(return open("/proc/PROCESS/mem", O_RDONLY) >= 0 ? 77 : 0;)"},
      {"traces it", "return ptrace(PTRACE_SEIZE, PROCESS, 0, 0) == 0 ? 77 : 0;"},
      {"changes its priority", "return setpriority(0, PROCESS, 5) == 0 ? 77 : 0;"},
      {"stops it", "return kill(PROCESS, SIGSTOP) == 0 ? 77 : 0;"},
      {"kills it", "return kill(PROCESS, SIGKILL) == 0 ? 77 : 0;"}}},
    {"LooksForOtherProcesses",
     {&P::processes},
     {{"sees one", R"(return std::filesystem::exists("/proc/PROCESS") ? 77 : 0;)"}}},
    {"ReadsTheEnvironment",
     {&P::environment},
     {{"finds a secret", R"(return getenv("COURSE_TOKEN") ? 77 : 0;)"}}},
    {"ClaimsRights",
     {&P::rights},
     {{"mounts over a folder",
       R"(return mount("none", "/tmp", "tmpfs", 0, nullptr) == 0 ? 77 : 0;)"},
      {"makes a device", R"(return mknod("memory", S_IFCHR | 0666, makedev(1, 1)) == 0 ? 77 : 0;)"},
      {"becomes root", "return setuid(0) == 0 ? 77 : 0;"}}},
    {"Connects",
     {&P::network},
     {{"to a port",
       R"(sockaddr_in to{}; to.sin_family = AF_INET; to.sin_port = htons(PORT);
          to.sin_addr.s_addr = htonl(INADDR_LOOPBACK); const int own = socket(AF_INET, SOCK_STREAM, 0);
          return connect(own, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 77 : 0;)"},
      {"to an abstract socket",
       R"(sockaddr_un to{}; to.sun_family = AF_UNIX; const std::string name("SOCKET");
          std::copy(name.begin(), name.end(), to.sun_path + 1);
          const int own = socket(AF_UNIX, SOCK_STREAM, 0);
          return connect(own, reinterpret_cast<sockaddr*>(&to),
                         offsetof(sockaddr_un, sun_path) + 1 + name.size()) == 0 ? 77 : 0;)"}}},
};

// The exit status has a bit for each attempt that got what it wanted.
std::string program_that_tries(const std::vector<Attempt>& attempts) {
  std::string functions = "#include <sys/wait.h>\n", calls = "int status = 0, all = 0;\n";
  for (size_t i = 0; i < attempts.size(); ++i) {
    const auto number = std::to_string(i), name = "attempt_" + number;
    functions += "int " + name + "() { " + attempts[i].code + " }\n";
    calls += "if (fork() == 0) _exit(" + name + "());\nwait(&status);\n" +
             "if (WIFEXITED(status) && WEXITSTATUS(status) == 77) all |= 1 << " + number + ";\n";
  }
  return program_of(functions, calls + "return all;");
}

int exit_status_in(const std::string& said) {
  const std::string before = "exit status ";
  const auto at = said.find(before);
  return at == std::string::npos ? 0 : std::stoi(said.substr(at + before.size()));
}

class ReachingProgram : public HostileTest, public ::testing::WithParamInterface<Reaching> {
 protected:
  // Which attempts got what they wanted, and what the worker said.
  std::pair<Names, std::string> attack(const Protections& protections) {
    const Instructor instructor(instructors());
    const auto& attempts = GetParam().attempts;
    const auto before = instructor.belongings();
    const auto said = judged(instructor.filled(program_that_tries(attempts)), protections,
                             /*built_once=*/true);
    Names harmed;
    for (size_t i = 0; i < attempts.size(); ++i) {
      const fs::path trace = instructor.filled(attempts[i].trace);
      const bool got = trace.empty() ? (exit_status_in(said) >> i & 1) != 0 : fs::remove(trace);
      if (got) harmed.emplace_back(attempts[i].name);
    }
    if (harmed.empty()) {
      EXPECT_EQ(instructor.belongings(), before);
    }
    fs::remove_all(instructors());
    return {harmed, said};
  }
};

TEST_P(ReachingProgram, DoesNoHarm) {
  Names all;
  for (const auto& attempt : GetParam().attempts) all.emplace_back(attempt.name);
  const auto [harmed, words] = attack(without(GetParam().aims));
  EXPECT_EQ(harmed, all) << "no attack at all: " << words;
  const auto [harmed_here, said] = attack({});
  EXPECT_THAT(harmed_here, IsEmpty()) << said;
  expect_no_points(said);
}

INSTANTIATE_TEST_SUITE_P(All, ReachingProgram, ::testing::ValuesIn(kReaching),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker::testing
