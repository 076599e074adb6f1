#include "log_file.hpp"

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <numeric>
#include <thread>

#include "distributed_utils/error.hpp"
#include "log.hpp"

namespace instrumentation {
namespace {

Header some_header() {
  Header header{};
  header.magic = kMagic;
  return header;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(LogFile, GrowsByChunksInWhichNoRecordIsSplit) {
  const ranks::TemporaryFolder folder;
  {
    LogFile file(folder / "f", some_header(), 64 << 20);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&file, thread] {
        const std::string text(100 + static_cast<size_t>(thread) * 7,
                               static_cast<char>('a' + thread));
        for (int i = 0; i < 3000; ++i) {
          EXPECT_TRUE(file.append(Kind::device, 1, std::as_bytes(std::span(text))));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const Log log = read_log(folder / "f");
  EXPECT_EQ(log.bytes % kChunk, 0U);
  EXPECT_GT(log.bytes / kChunk, 4U);
  EXPECT_EQ(log.records.size(), 12'000U);
  for (const auto& record : log.records) {
    EXPECT_EQ(record.payload, std::string(record.payload.size(), record.payload[0]));
  }
}

// A limit on file sizes stands for a full disk.
TEST(LogFile, OnAFullDiskSaysSoAndKeepsWhatItHas) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kChunk, kChunk};
    setrlimit(RLIMIT_FSIZE, &limit);
    LogFile file(folder / "f", some_header(), 64 << 20);
    const std::string text(1000, 'x');
    int written = 0;
    while (file.append(Kind::device, 1, bytes_of(text))) ++written;
    std::_Exit(written > 200 && !file.append(Kind::device, 1, bytes_of(text)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const Log log = read_log(folder / "f");
  EXPECT_GT(log.records.size(), 200U);
  EXPECT_EQ(log.header.dropped, 2U);
}

// A step's gradients are longer than a chunk.
TEST(LogFile, ALongRecordBeginsAChunkAndNothingIsLostBehindIt) {
  const ranks::TemporaryFolder folder;
  std::string longest(3 * kChunk + 17, '\0');
  std::iota(longest.begin(), longest.end(), '\1');
  {
    LogFile file(folder / "f", some_header(), 64 << 20);
    for (const auto& text : {std::string("a"), longest, std::string("b"), longest}) {
      EXPECT_TRUE(file.append(Kind::device, 1, bytes_of(text)));
    }
  }
  const Log log = read_log(folder / "f");
  ASSERT_EQ(log.records.size(), 4U);
  EXPECT_EQ(log.records[1].payload, longest);
  EXPECT_EQ(log.records[2].payload, "b");
  EXPECT_EQ(log.records[3].payload, longest);
}

TEST(LogFile, HoldsWhatTheFileIsLongAndCountsTheRest) {
  const ranks::TemporaryFolder folder;
  std::ofstream(folder / "f").flush();
  std::filesystem::resize_file(folder / "f", 2 * kChunk + 100);
  {
    LogFile file(folder / "f", some_header());
    EXPECT_FALSE(file.append(Kind::device, 1, bytes_of(std::string(3 * kChunk, 'x'))));
    while (file.append(Kind::device, 1, bytes_of(std::string(2000, 'x')))) {
    }
    EXPECT_TRUE(file.append(Kind::device, 1, {}));
  }
  const Log log = read_log(folder / "f");
  EXPECT_EQ(log.header.dropped, 2U);
  EXPECT_EQ(log.bytes, 2 * kChunk + 100);
  EXPECT_GT(log.records.size(), 250U);
}

// A daemon does that; and the numbers are soon another file's.
TEST(LogFile, OutlivesTheClosingOfAllDescriptors) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    LogFile file(folder / "f", some_header(), 64 << 20);
    for (int descriptor = 0; descriptor < 1024; ++descriptor) close(descriptor);
    std::ofstream other(folder / "other");
    const std::string text(1000, 'x');
    for (int i = 0; i < 1000; ++i) file.append(Kind::device, 1, bytes_of(text));
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(read_log(folder / "f").records.size(), 1000U);
  EXPECT_EQ(std::filesystem::file_size(folder / "other"), 0U);
}

TEST(LogFile, WithoutAFileToWriteToIsAnError) {
  const ranks::TemporaryFolder folder;
  EXPECT_THROW(LogFile(folder / "none", some_header()), distributed_utils::Error);
  std::ofstream(folder / "short") << "no room";
  EXPECT_THROW(LogFile(folder / "short", some_header()), distributed_utils::Error);
}

}  // namespace
}  // namespace instrumentation
