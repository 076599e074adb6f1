#include "npy.hpp"

#include <gmock/gmock.h>

#include <random>

#include "errors.hpp"
#include "oracle.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string npy(const std::string& header, const std::string& numbers, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  const auto length = header.size();
  text += {static_cast<char>(length % 256), static_cast<char>(length / 256)};
  if (version > 1) text += std::string(2, '\0');
  return text + header + numbers;
}

const std::string kOneFloat("\0\0\xc0\x3f", 4);  // 1.5

TEST(Npy, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.npy";
  write_npy(file, {{1, 3, 1, 1}, {0.5, -2, 1e300}});
  const auto read = read_npy(file);
  EXPECT_EQ(read.shape, (std::vector<int64_t>{1, 3, 1, 1}));
  EXPECT_EQ(read.values, (std::vector<double>{0.5, -2, 1e300}));
}

TEST(Npy, ReadsFp32AndAllVersionsAndNoDimensions) {
  const TemporaryFolder folder;
  for (const char version : {1, 2, 3}) {
    const auto file = folder.write(
        "a.npy",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", kOneFloat, version));
    EXPECT_EQ(read_npy(file).values, std::vector<double>{1.5});
  }
  const auto scalar = folder.write(
      "b.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", kOneFloat));
  EXPECT_TRUE(read_npy(scalar).shape.empty());
}

TEST(Npy, AgreesWithPythons) {
  const TemporaryFolder folder;
  const auto file = (folder.path() / "ours.npy").string();
  write_npy(file, {{2, 3}, {1, 2, 3, 4, 5, 6.25}});
  const auto theirs = (folder.path() / "theirs.npy").string();
  const auto python = oracle::json("../../../tasks/weather/tests/numbers.py", {file, theirs});
  if (!python) GTEST_SKIP() << oracle::kMissing;
  EXPECT_EQ(python->dump(), R"(["float64",[2,3],[1.0,2.0,3.0,4.0,5.0,6.25]])");
  EXPECT_EQ(read_npy(theirs).shape, (std::vector<int64_t>{1, 4, 1, 1}));
  EXPECT_EQ(read_npy(theirs).values, (std::vector<double>{0, 0.5, 1, 1.5}));
}

TEST(Npy, RefusesOtherContentWithTheFilesName) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& bytes) {
    const auto file = folder.write("global_means.npy", bytes);
    const auto said = error_of([&] { read_npy(file); });
    EXPECT_THAT(said, HasSubstr(file.string() + ": "));
    return said;
  };
  const auto with = [](const std::string& type, const std::string& order,
                       const std::string& shape) {
    return npy(
        "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n",
        kOneFloat);
  };
  EXPECT_THAT(refused(""), HasSubstr("not a complete .npy file"));
  EXPECT_THAT(refused("PK\x03\x04 something else"), HasSubstr("numpy.save"));
  EXPECT_THAT(refused(with("'<i4'", "False", "(1,)")), HasSubstr("have type '<i4'"));
  EXPECT_THAT(refused(with("'>f4'", "False", "(1,)")), HasSubstr("little-endian"));
  EXPECT_THAT(refused(with("[('a', '<f4')]", "False", "(1,)")), HasSubstr("unknown"));
  EXPECT_THAT(refused(with("'<f4'", "True", "(1,)")), HasSubstr("row-major"));
  EXPECT_THAT(refused(with("'<f4'", "False", "(2,)")), HasSubstr("4 bytes of numbers follow"));
  EXPECT_THAT(refused(with("'<f4'", "False", "(-1,)")), HasSubstr("no shape"));
  EXPECT_THAT(refused(with("'<f4'", "False", "(1, ,)")), HasSubstr("no shape"));
  EXPECT_THAT(refused(with("'<f4'", "False", "(99999999999999999999,)")), HasSubstr("impossible"));
  EXPECT_THAT(refused(with("'<f4'", "False", "(1,)") + "x"), HasSubstr("5 bytes"));
  EXPECT_THAT(refused(std::string(2 << 20, 'x')), HasSubstr("too long"));
  EXPECT_THAT(error_of([&] { read_npy(folder.path() / "none.npy"); }), HasSubstr("no such file"));
}

// The header is text, and the numbers are as long as it says: what is read all the same, is the
// same.
TEST(Npy, WithADamagedHeaderIsNamedOrTheSame) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "global_means.npy";
  write_npy(file, {{1, 20, 1, 1}, std::vector<double>(20, 0.1)});
  const auto whole = bytes_of(file);
  const auto begin = whole.size() - 20 * sizeof(double);
  std::mt19937_64 random(3);
  int named = 0;
  for (int i = 0; i < 1200; ++i) {
    auto other = whole;
    const auto at = random() % begin;
    other[at] = static_cast<char>(i % 2 == 0 ? random() : '0' + random() % 10);
    if (i % 3 == 0) other.resize(random() % whole.size());
    std::filesystem::remove(file);
    folder.write("global_means.npy", other);
    try {
      const auto read = read_npy(file);
      EXPECT_EQ(read.values, std::vector<double>(20, 0.1)) << other.substr(0, begin);
      EXPECT_EQ(read.shape, (std::vector<int64_t>{1, 20, 1, 1})) << other.substr(0, begin);
      EXPECT_EQ(other.size(), whole.size());
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(file.string() + ": "));
      ++named;
    }
  }
  EXPECT_GT(named, 800);
}

}  // namespace
}  // namespace tasks::weather
