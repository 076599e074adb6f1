#include "hdf5.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "errors.hpp"
#include "foreign.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Hdf5, ReadsPlacesThatItWrote) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.h5";
  write_fields(file, 7, {9, 2, 3});
  const hdf5::Dataset dataset(file, "fields", 3);
  EXPECT_EQ(dataset.shape(), (std::vector<int64_t>{9, 2, 3}));
  std::vector<float> values(3);
  for (int64_t place = 0; place < 9; ++place) {
    for (int64_t row = 0; row < 2; ++row) {
      dataset.read(place, row, values.data());
      for (int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(values[static_cast<size_t>(i)], number_at(7, place, 3 * row + i));
      }
    }
  }
}

TEST(Hdf5, TheSameNumbersGiveTheSameBytes) {
  const TemporaryFolder folder;
  write_fields(folder.path() / "a.h5", 1, {3, 2, 2});
  write_fields(folder.path() / "b.h5", 1, {3, 2, 2});
  EXPECT_EQ(bytes_of(folder.path() / "a.h5"), bytes_of(folder.path() / "b.h5"));
  EXPECT_FALSE(carries_a_time(folder.path() / "a.h5"));
}

TEST(Hdf5, ThreadsMayReadAtOnce) {
  const TemporaryFolder folder;
  write_fields(folder.path() / "a.h5", 1, {50, 2, 2});
  write_fields(folder.path() / "b.h5", 2, {50, 2, 2});
  const hdf5::Dataset a(folder.path() / "a.h5", "fields", 3),
      b(folder.path() / "b.h5", "fields", 3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<float> values(2);
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t place = (i * 7 + thread * 11) % 50, file = i % 2 + 1;
        (file == 1 ? a : b).read(place, 1, values.data());
        wrong += values[1] != number_at(file, place, 3);
        // Opening is a call like any other.
        if (i % 20 == 0) hdf5::Dataset(folder.path() / "a.h5", "fields", 3);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Hdf5, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const auto said = [](const std::filesystem::path& file, const std::string& name = "fields") {
    const auto text = error_of([&] { hdf5::Dataset(file, name, 4); });
    EXPECT_THAT(text, HasSubstr(file.string() + ": "));
    return text;
  };
  const auto file = folder.path() / "a.h5";
  write_fields(file, 0, {3, 2, 4, 8});
  EXPECT_THAT(said(folder.path() / "none.h5"), HasSubstr("no such file"));
  EXPECT_THAT(said(file, "velds"), HasSubstr("no dataset 'velds'"));
  EXPECT_THAT(said(folder.write("text.h5", "no HDF5 at all")),
              HasSubstr("not a complete HDF5 file"));
  EXPECT_THAT(said(folder.write("empty.h5", "")), HasSubstr("not a complete HDF5 file"));
  const auto bytes = bytes_of(file);
  EXPECT_THAT(said(folder.write("cut.h5", bytes.substr(0, bytes.size() - 1))),
              AllOf(HasSubstr("not a complete HDF5 file"), HasSubstr("truncated")));
  write_fields(folder.path() / "flat.h5", 0, {3, 2});
  EXPECT_THAT(said(folder.path() / "flat.h5"), HasSubstr("shape [3, 2], not 4 dimensions"));
}

TEST(Hdf5, RefusesPlacesBeyondTheEnd) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.h5";
  write_fields(file, 0, {3, 1, 1, 1});
  const hdf5::Dataset dataset(file, "fields", 4);
  float value = 0;
  using Place = std::array<int64_t, 2>;
  for (const auto& place : {Place{3, 0}, Place{-1, 0}, Place{0, 1}, Place{0, -1}}) {
    EXPECT_THAT(
        error_of([&] { dataset.read(place[0], place[1], &value); }),
        HasSubstr(fmt::format("[{}, {}] does not exist: there are [3, 1]", place[0], place[1])));
  }
}

TEST(Hdf5, SaysThatItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { hdf5::Writer(folder.path() / "none/a.h5", "fields", {1}); }),
              HasSubstr("none/a.h5: cannot be written"));
}

}  // namespace
}  // namespace tasks::weather
