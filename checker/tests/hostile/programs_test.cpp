// What programs use up while they run, and what they try while they are compiled.
#include "hostile/attack.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

using P = Protections;

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
    {"IncludesTheCourse",
     "return found;",
     {&P::sight},
     "#if __has_include(\"PROJECT/checker/chapters/data_parallel/chapter.yaml\")\nconstexpr int "
     "found = 77;"
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

class HostileProgram : public HostileTest, public ::testing::WithParamInterface<Attack> {
 protected:
  // Whether it did its harm, and what the worker said.
  std::pair<bool, std::string> attack(const Protections& protections) {
    const Instructor instructor(instructors());
    const auto& how = GetParam();
    const auto before = instructor.belongings();
    const bool aims_at_the_build = *how.before != 0;
    const auto said = judged(instructor.filled(program_of(how.before, how.code)), protections,
                             /*built_once=*/!aims_at_the_build);
    const bool harmed = said.find("exit status 77") != std::string::npos;
    if (!harmed) {
      EXPECT_EQ(instructor.belongings(), before);
    }
    fs::remove_all(instructors());
    return {harmed, said};
  }
};

TEST_P(HostileProgram, DoesNoHarm) {
  const auto [harmed, words] = attack(without(GetParam().aims));
  EXPECT_TRUE(harmed) << "no attack at all: " << words;
  const auto [harmed_here, said] = attack({});
  EXPECT_FALSE(harmed_here) << said;
  expect_no_points(said);
}

INSTANTIATE_TEST_SUITE_P(UsingUp, HostileProgram, ::testing::ValuesIn(kUsingUp), name_of);
INSTANTIATE_TEST_SUITE_P(Compiling, HostileProgram, ::testing::ValuesIn(kCompiling), name_of);

}  // namespace
}  // namespace checker::testing
