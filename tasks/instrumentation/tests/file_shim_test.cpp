// The library that is preloaded into judged ranks, which tells of files that change.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

// A program's output, with the folder's name cut out; `ended` gets its status.
std::string output_of(const std::string& command, const fs::path& folder, int& ended) {
  FILE* const pipe = ::popen((command + " '" + folder.string() + "'").c_str(), "r");
  std::string text;
  std::array<char, 4096> part{};
  while (const auto size = std::fread(part.data(), 1, part.size(), pipe))
    text.append(part.data(), size);
  ended = ::pclose(pipe);
  const auto name = folder.string() + "/";
  for (auto at = text.find(name); at != text.npos; at = text.find(name))
    text.erase(at, name.size());
  return text;
}

class FileShim : public testing::Test {
 protected:
  FileShim() { fs::create_directories(folder_); }
  ~FileShim() override { fs::remove_all(folder_); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "file_shim_test";
};

TEST_F(FileShim, TellsOfEveryChangeAndOfNoReading) {
  int ended = 0;
  const auto told = output_of("LD_PRELOAD='" FILE_SHIM "' '" FILE_SHIM_PROGRAM "'", folder_, ended);
  EXPECT_EQ(ended, 0) << "each call does what it is asked for";
  EXPECT_EQ(told,
            "write stream\nwrite stream\nwrite c\nwrite posix\nwrite created\nwrite at\n"
            "write copied\nwrite c\nwrite linked\nwrite symbolic\nmove c renamed\nmove at moved\n"
            "remove renamed\nremove linked\nremove copied\nremove moved\n");
}

TEST_F(FileShim, ChangesNothingForProgramsWithoutTheInstrumentation) {
  int ended = 0;
  EXPECT_EQ(output_of("LD_PRELOAD='" FILE_SHIM "' ls", folder_, ended), "");
  EXPECT_EQ(ended, 0);
}

}  // namespace
