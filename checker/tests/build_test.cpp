#include "process/build.hpp"

#include <gmock/gmock.h>

namespace checker {
namespace {

TEST(CompilerMessages, LeaveOutTheBuildToolsOwnWords) {
  const std::vector<std::string> output{"[1/4] Building CXX object a.o",
                                        "FAILED: a.o ",
                                        "/usr/bin/clang++ -DX -o a.o -c a.cpp",
                                        "a.cpp:3:5: error: use of undeclared identifier 'x'",
                                        "[[nodiscard]] int f();",
                                        "    ^",
                                        "[2/4] Building CXX object b.o",
                                        "1 error generated.",
                                        "ninja: build stopped: subcommand failed."};
  EXPECT_THAT(compiler_messages(output),
              ::testing::ElementsAre("a.cpp:3:5: error: use of undeclared identifier 'x'",
                                     "[[nodiscard]] int f();", "    ^", "1 error generated."));
}

}  // namespace
}  // namespace checker
