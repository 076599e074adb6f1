#pragma once
/// For tests of ./workbook data: a server, and the verb called as a user calls it.
#include <gmock/gmock.h>

#include "data/manifest.hpp"
#include "files.hpp"
#include "http_server.hpp"
#include "support/text.hpp"

namespace checker::testing {

class DataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"sh", "-c", "command -v curl"}).status != 0) {
      GTEST_SKIP() << "curl is not installed";
    }
  }

  std::filesystem::path folder() const { return temporary_.path() / "the set"; }
  std::filesystem::path scratch() const { return temporary_.path() / "scratch"; }

  static Outcome data(std::vector<std::string> arguments, const std::string& shell = "") {
    arguments.insert(arguments.begin(), {CHECKER_PROGRAM, "data"});
    if (!shell.empty())
      arguments.insert(arguments.begin(), {"sh", "-c", shell + "; \"$0\" \"$@\""});
    return run_program(arguments, {"no_proxy=127.0.0.1", "NO_COLOR=1"});
  }

  /// data NAME --from <the server> --into <the folder> and more.
  Outcome fetch(const std::string& name, std::vector<std::string> more = {},
                const std::string& shell = "") {
    more.insert(more.begin(), {name, "--from", server_.address(), "--into", folder().string()});
    return data(more, shell);
  }

  /// An archive of files in a folder `top`, as tar makes it.
  std::string archive(const std::map<std::string, std::string>& files,
                      const std::vector<std::string>& options = {}) const {
    for (const auto& [path, text] : files) write_file(scratch() / "top" / path, text);
    const auto file = scratch() / "archive.tgz";
    std::vector<std::string> command{"tar", "-czf", file.string(), "-C", scratch().string()};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("top");
    EXPECT_EQ(run_program(command).status, 0);
    return read_file(file);
  }

  HttpServer server_;
  TemporaryFolder temporary_;
};

/// With an archive of ImageWoof that holds two pictures.
class DataArchiveTest : public DataTest {
 protected:
  static constexpr const char* kArchive = "/imagewoof2-320.tgz";

  void SetUp() override {
    DataTest::SetUp();
    // Random bytes, which no archive makes smaller.
    std::string noise(100'000, '\0');
    uint32_t state = 1;
    for (auto& byte : noise) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    bytes_ = archive({{"train/n02086240/a.JPEG", noise}, {"val/n02086240/b.JPEG", "small"}});
    server_.serve(kArchive, {.bytes = bytes_});
  }

  std::filesystem::path part() const { return folder() / ".part/imagewoof2-320.tgz.part"; }

  void expect_complete() const {
    EXPECT_EQ(data::files_below(folder()),
              (std::vector<std::string>{"manifest.sha256", "train/n02086240/a.JPEG",
                                        "val/n02086240/b.JPEG"}));
    EXPECT_EQ(read_file(folder() / "val/n02086240/b.JPEG"), "small");
    EXPECT_FALSE(std::filesystem::exists(folder() / ".part"));
  }

  std::string bytes_;
};

}  // namespace checker::testing
