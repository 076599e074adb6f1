// What programs reach for while they run: what they may not see, touch or use up.
#include "hostile/attack.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

using P = Protections;

const Attack kReading[] = {
    {"ReadsTheSolution",
     R"(std::string text; std::ifstream("INSTRUCTOR/solution") >> text;
        return text == "answer" ? 77 : 0;)",
     {&P::sight}},
    {"ListsTheInstructorsFolder",
     R"(std::error_code no; const std::filesystem::directory_iterator none;
        return std::filesystem::directory_iterator("INSTRUCTOR", no) != none ? 77 : 0;)",
     {&P::sight}},
    {"ReadsAnotherHandIn",
     R"(return std::ifstream("INSTRUCTOR/class/bob/02.cpp") ? 77 : 0;)",
     {&P::sight}},
    {"ReadsTheInstructorsKey",
     R"(return std::ifstream("INSTRUCTOR/home/.ssh/id_ed25519") ? 77 : 0;)",
     {&P::sight}},
    {"ReadsTheResults", R"(return std::ifstream("INSTRUCTOR/results.db") ? 77 : 0;)", {&P::sight}},
    {"ReadsTheLadder",
     R"(return std::filesystem::exists("PROJECT/checker/ladder") ? 77 : 0;)",
     {&P::sight}},
    {"ReadsTheBuildFolder",
     R"(return std::ifstream("BUILD/CMakeCache.txt") ? 77 : 0;)",
     {&P::sight}},
    {"ReadsTheSystemsUsers", R"(return std::ifstream("/etc/passwd") ? 77 : 0;)", {&P::sight}},
    {"FindsTheSolutionThroughProc",
     R"(std::string text; std::ifstream("/proc/PROCESS/root/INSTRUCTOR/solution") >> text;
        return text == "answer" ? 77 : 0;)",
     {&P::processes, &P::rights}},
    {"ReadsAnotherProcessesMemory",
     R"(return open("/proc/PROCESS/mem", O_RDONLY) >= 0 ? 77 : 0;)",
     {&P::processes, &P::rights}},
    {"LooksForOtherProcesses",
     R"(return std::filesystem::exists("/proc/PROCESS") ? 77 : 0;)",
     {&P::processes}},
    {"ReadsASecretFromTheEnvironment",
     R"(return getenv("COURSE_TOKEN") ? 77 : 0;)",
     {&P::environment}},
};

const Attack kTouching[] = {
    {"WritesIntoTheResults",
     R"(return std::ofstream("INSTRUCTOR/results.db") << "1000 points" ? 77 : 0;)",
     {&P::sight},
     "",
     ""},
    {"ReplacesTheChecker",
     R"(std::filesystem::remove("INSTRUCTOR/bin/checker");
        std::filesystem::create_symlink("/bin/true", "INSTRUCTOR/bin/checker"); return 77;)",
     {&P::sight}},
    {"LeavesALibraryForTheNextOne",
     R"(std::ofstream("/tmp/worldsize-SOCKET-libtorch_cpu.so") << "not torch"; return 0;)",
     {&P::sight},
     "",
     "/tmp/worldsize-SOCKET-libtorch_cpu.so"},
    {"LeavesAFileInSharedMemory",
     R"(std::ofstream("/dev/shm/worldsize-SOCKET") << "for a friend"; return 0;)",
     {&P::sight},
     "",
     "/dev/shm/worldsize-SOCKET"},
    {"BecomesRoot", "return setuid(0) == 0 ? 77 : 0;", {&P::rights}},
    {"MountsOverAFolder",
     R"(return mount("none", "/tmp", "tmpfs", 0, nullptr) == 0 ? 77 : 0;)",
     {&P::rights}},
    {"MakesADevice",
     R"(return mknod("memory", S_IFCHR | 0666, makedev(1, 1)) == 0 ? 77 : 0;)",
     {&P::rights}},
    {"TracesAProcess",
     "return ptrace(PTRACE_SEIZE, PROCESS, 0, 0) == 0 ? 77 : 0;",
     {&P::processes, &P::rights}},
    {"KillsAProcess", "return kill(PROCESS, SIGKILL) == 0 ? 77 : 0;", {&P::processes, &P::rights}},
    {"StopsAProcess", "return kill(PROCESS, SIGSTOP) == 0 ? 77 : 0;", {&P::processes, &P::rights}},
    {"ChangesAProcessesPriority",
     "return setpriority(0, PROCESS, 5) == 0 ? 77 : 0;",
     {&P::processes, &P::rights}},
    {"ConnectsToAPort",
     R"(sockaddr_in to{}; to.sin_family = AF_INET; to.sin_port = htons(PORT);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK); const int own = socket(AF_INET, SOCK_STREAM, 0);
        return connect(own, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 77 : 0;)",
     {&P::network}},
    {"ConnectsToAnAbstractSocket",
     R"(sockaddr_un to{}; to.sun_family = AF_UNIX; const std::string name("SOCKET");
        std::copy(name.begin(), name.end(), to.sun_path + 1);
        const int own = socket(AF_UNIX, SOCK_STREAM, 0);
        return connect(own, reinterpret_cast<sockaddr*>(&to),
                       offsetof(sockaddr_un, sun_path) + 1 + name.size()) == 0 ? 77 : 0;)",
     {&P::network}},
};

const Attack kUsingUp[] = {
    {"OpensMoreFilesThanItMay",
     R"(int opened = 0; while (opened < 300 && open("/dev/null", O_RDONLY) >= 0) ++opened;
        return opened == 300 ? 77 : 0;)",
     {&P::limits}},
    {"StartsMoreProcessesThanItMay",
     R"(int started = 0; for (; started < 600; ++started) { const auto pid = fork();
        if (pid < 0) break; if (pid == 0) pause(); } return started == 600 ? 77 : 0;)",
     {&P::limits}},
    {"StartsMoreThreadsThanItMay",
     R"(int started = 0; try { for (; started < 600; ++started) std::thread([] { pause(); }).detach();
        } catch (const std::exception&) {} _exit(started == 600 ? 77 : 0);)",
     {&P::limits}},
    {"TakesMoreMemoryThanItMay",
     R"(const size_t bytes = 2UL << 30; auto* all = static_cast<char*>(malloc(bytes));
        for (size_t i = 0; all && i < bytes; i += 4096) all[i] = 1; return all ? 77 : 0;)",
     {&P::limits}},
    {"ComputesLongerThanItMay", "while (clock() < 5 * CLOCKS_PER_SEC) {} return 77;", {&P::limits}},
    {"WritesALargerFileThanItMay",
     R"(signal(SIGXFSZ, SIG_IGN); std::ofstream file("large"); const std::string block(1 << 20, 'x');
        for (int i = 0; i < 100 && file; ++i) file << block << std::flush; return file ? 77 : 0;)",
     {&P::limits}},
    {"FillsTheDisk",
     R"(const std::string block(50 << 20, 'x'); bool all = true;
        for (int i = 0; all && i < 22; ++i) {
          std::ofstream file(std::to_string(i)); file << block << std::flush; all = !!file; }
        return all ? 77 : 0;)",
     {&P::limits}},
    {"MakesMoreFilesThanItMay",
     R"(int made = 0;
        while (made < 21000 && mknod(std::to_string(made).c_str(), S_IFREG | 0600, 0) == 0) ++made;
        return made == 21000 ? 77 : 0;)",
     {&P::limits}},
};

// What is read, made or used up while the program is compiled.
const Attack kCompiling[] = {
    {"IncludesTheSolution",
     R"(return std::string(text) == "answer" ? 77 : 0;)",
     {&P::sight},
     "const char* const text =\n#include \"INSTRUCTOR/solution.hpp\"\n;"},
    {"EmbedsTheSolution",
     R"(return std::string(text, 6) == "answer" ? 77 : 0;)",
     {&P::sight},
     R"(extern "C" const char text[]; asm("text: .incbin \"INSTRUCTOR/solution\"");)"},
    {"LooksForTheSolutions",
     "return found;",
     {&P::sight},
     "#if __has_include(\"PROJECT/solutions/02_setup/train.cpp\")\nconstexpr int found = 77;"
     "\n#else\nconstexpr int found = 0;\n#endif\n"},
    {"IncludesTheLadder",
     "return found;",
     {&P::sight},
     "#if __has_include(\"PROJECT/checker/ladder/ladder.yaml\")\nconstexpr int found = 77;"
     "\n#else\nconstexpr int found = 0;\n#endif\n"},
    {"LooksForProcessesWhileItIsCompiled",
     "return found;",
     {&P::processes},
     "#if __has_include(\"/proc/PROCESS/stat\")\nconstexpr int found = 77;"
     "\n#else\nconstexpr int found = 0;\n#endif\n"},
    {"CompilesForEver",
     "return Tree<16, 0>::value == 0 ? 0 : 77;",
     {&P::limits},
     R"(template <int depth, int path> struct Tree {
          static constexpr int value =
              Tree<depth - 1, 2 * path>::value + Tree<depth - 1, 2 * path + 1>::value; };
        template <int path> struct Tree<0, path> { static constexpr int value = 1; };)"},
    {"CompilesWithoutEndInMemory",
     "return sizeof(all) > 1 ? 77 : 0;",
     {&P::limits},
     R"(#define A 0,0,0,0,0,0,0,0
#define B A,A,A,A,A,A,A,A
#define C B,B,B,B,B,B,B,B
#define D C,C,C,C,C,C,C,C
#define E D,D,D,D,D,D,D,D
#define F E,E,E,E,E,E,E,E
#define G F,F,F,F,F,F,F,F
#define H G,G,G,G,G,G,G,G
#define FIRST(x, ...) x
#define CALL(...) FIRST(__VA_ARGS__)
const int all = CALL(H);)"},
    {"BecomesAHugeProgram",
     "return huge[5] == 0 ? 77 : 0;",
     {&P::limits},
     "char huge[300 << 20] = {1};"},
};

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

class HostileProgram : public HostileTest, public ::testing::WithParamInterface<Attack> {
 protected:
  // Whether it did its harm, and what the worker said.
  std::pair<bool, std::string> attack(const Protections& protections) {
    const Instructor instructor(instructors());
    const auto& how = GetParam();
    auto text = replaced(kProgram, "%before", how.before);
    text = instructor.filled(replaced(std::move(text), "%code", how.code));
    write_file(folder_.path() / "hand-in" / "02.cpp", text);
    const auto before = instructor.belongings();
    auto what = task();
    what.protections = protections;
    // What aims at the running program is built once.
    if (!*how.before) what.programs = folder_.path() / "programs";
    const auto said = judged(what);
    const fs::path trace = instructor.filled(how.trace);
    const bool harmed =
        trace.empty() ? said.find("exit status 77") != std::string::npos : fs::remove(trace);
    if (!harmed) {
      EXPECT_EQ(instructor.belongings(), before);
    }
    fs::remove_all(instructors());
    return {harmed, said};
  }
};

TEST_P(HostileProgram, DoesNoHarm) {
  fs::create_directories(folder_.path() / "programs");
  Protections without;
  for (const auto aim : GetParam().aims) without.*aim = false;
  // The course may lie in a folder that only root looks into.
  if (!without.sight) without.rights = false;
  const auto [harmed, words] = attack(without);
  EXPECT_TRUE(harmed) << "no attack at all: " << words;
  const auto [harmed_here, said] = attack({});
  EXPECT_FALSE(harmed_here) << said;
  expect_no_points(said);
}

INSTANTIATE_TEST_SUITE_P(Reading, HostileProgram, ::testing::ValuesIn(kReading), name_of);
INSTANTIATE_TEST_SUITE_P(Touching, HostileProgram, ::testing::ValuesIn(kTouching), name_of);
INSTANTIATE_TEST_SUITE_P(UsingUp, HostileProgram, ::testing::ValuesIn(kUsingUp), name_of);
INSTANTIATE_TEST_SUITE_P(Compiling, HostileProgram, ::testing::ValuesIn(kCompiling), name_of);

}  // namespace
}  // namespace checker::testing
