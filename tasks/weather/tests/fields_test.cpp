#include "fields.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "errors.hpp"
#include "foreign.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FieldsTest : public testing::Test {
 protected:
  FieldsTest() { write_all(folder_.path()); }

  Fields open(std::string_view split = "train", int64_t lead = 1) const {
    return {folder_.path(), split, lead, torch::kDouble};
  }
  std::string error(std::string_view split = "train", int64_t lead = 1) const {
    return error_of([&] { open(split, lead); });
  }
  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

/// What number_at() is normalised to: means are channel - 0.5, deviations channel + 2.
double expected(int64_t file, int64_t time, int64_t cell) {
  const auto channel = double(cell / 32);
  return (double(number_at(file, time, cell)) - (channel - 0.5)) / (channel + 2);
}

void expect_fields(const torch::Tensor& fields, int64_t file, int64_t time) {
  ASSERT_EQ(fields.sizes(), (std::vector<int64_t>{2, 4, 8}));
  for (int64_t cell = 0; cell < 64; ++cell) {
    EXPECT_NEAR(fields.flatten()[cell].item<double>(), expected(file, time, cell), 1e-12);
  }
}

TEST_F(FieldsTest, PairsLieInOneFileAndAreNormalised) {
  const auto fields = open();
  // Four time steps make three pairs, three make two: none goes from one file to the next.
  ASSERT_EQ(fields.size(), 5);
  const auto batch = fields.fetch({3, 0, 2, 4});
  EXPECT_EQ(batch.target.count(), 4);
  const std::vector<std::pair<int64_t, int64_t>> places{{1, 0}, {0, 0}, {0, 2}, {1, 1}};
  for (int64_t i = 0; i < 4; ++i) {
    const auto [file, time] = places[static_cast<size_t>(i)];
    expect_fields(batch.input[0][i], file, time);
    expect_fields(batch.target.tensor()[i], file, time + 1);
  }
}

TEST_F(FieldsTest, AreTheSameWithOneThreadAndWithFour) {
  std::vector<Batch> read;
  for (const int threads : {1, 4}) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    read.push_back(open().fetch({4, 0, 3}));
    at::set_num_threads(before);
  }
  EXPECT_TRUE(torch::equal(read[0].input[0], read[1].input[0]));
  EXPECT_TRUE(torch::equal(read[0].target.tensor(), read[1].target.tensor()));
}

TEST_F(FieldsTest, SaysThatAnOpenFileHasBecomeShorter) {
  const auto fields = open("test");
  std::filesystem::resize_file(at("test/1993.h5"), 1000);
  EXPECT_THAT(
      error_of([&] { fields.fetch({1}); }),
      AllOf(HasSubstr("1993.h5: cannot be read: it has become shorter"), HasSubstr("Fix:")));
}

TEST_F(FieldsTest, AForecastMayBeLonger) {
  const auto fields = open("train", 2);
  ASSERT_EQ(fields.size(), 3);
  const auto batch = fields.fetch({2});
  expect_fields(batch.input[0][0], 1, 0);
  expect_fields(batch.target.tensor()[0], 1, 2);
}

TEST_F(FieldsTest, SplitsAreFolders) {
  expect_fields(open("validation").fetch({1}).input[0][0], 2, 1);
  expect_fields(open("test").fetch({0}).input[0][0], 3, 0);
}

TEST_F(FieldsTest, ReadsOtherLayoutsOfTheSameNumbers) {
  for (const auto what :
       {Foreign::old_format, Foreign::chunked, Foreign::big_endian, Foreign::user_block}) {
    write_foreign(at("test/1993.h5"), what);
    expect_fields(open("test").fetch({1}).target.tensor()[0], 0, 2);
  }
}

TEST_F(FieldsTest, RefusesNumbersThatItWouldHaveToGuess) {
  const auto error_with = [&](Foreign what) {
    write_foreign(at("test/1993.h5"), what);
    const auto said = error("test");
    EXPECT_THAT(said, HasSubstr(at("test/1993.h5").string() + ": "));
    return said;
  };
  EXPECT_THAT(error_with(Foreign::doubles), HasSubstr("not fp32; write them as float32"));
  EXPECT_THAT(error_with(Foreign::integers), HasSubstr("not fp32"));
  EXPECT_THAT(error_with(Foreign::compressed), HasSubstr("compressed"));
  EXPECT_THAT(error_with(Foreign::elsewhere), HasSubstr("are stored neither as one block"));
  EXPECT_THAT(error_with(Foreign::virtual_one), HasSubstr("are stored neither as one block"));
  EXPECT_THAT(error_with(Foreign::group), HasSubstr("not a readable dataset"));
  EXPECT_THAT(error_with(Foreign::dangling_link), HasSubstr("not a readable dataset"));
}

TEST_F(FieldsTest, SaysWhichFileIsMissingOrTooShort) {
  EXPECT_THAT(error("train", 3), AllOf(HasSubstr(at("train/1991.h5").string()),
                                       HasSubstr("3 time steps, too few for a forecast of 3")));
  std::filesystem::remove(at("test/1993.h5"));
  EXPECT_THAT(error("test"), HasSubstr(at("test").string() + ": it holds no .h5 files"));
  std::filesystem::remove(at("test"));
  EXPECT_THAT(error("test"), HasSubstr(at("test").string() + ": No such file"));
  std::filesystem::remove(at("stats/global_stds.npy"));
  EXPECT_THAT(error(), HasSubstr("global_stds.npy: there is no such file"));
}

TEST_F(FieldsTest, SaysWhichShapesDoNotFit) {
  write_fields(at("train/1991.h5"), 1, {3, 2, 4, 6});
  EXPECT_THAT(error(), AllOf(HasSubstr(at("train/1991.h5").string()),
                             HasSubstr("[3, 2, 4, 6], unlike that of"), HasSubstr("1990.h5")));
  write_fields(at("test/1993.h5"), 1, {3, 2, 4});
  EXPECT_THAT(error("test"), HasSubstr("[3, 2, 4], not 4 dimensions"));
}

TEST_F(FieldsTest, SaysWhichStatisticsDoNotFit) {
  const auto means = at("stats/global_means.npy"), deviations = at("stats/global_stds.npy");
  write_npy(means, {{1, 3, 1, 1}, {1, 2, 3}});
  EXPECT_THAT(error(),
              AllOf(HasSubstr(means.string()), HasSubstr("(1, 3, 1, 1)"), HasSubstr("2 channels")));
  write_npy(means, {{2}, {1, 2}});
  EXPECT_THAT(error(), HasSubstr("it must be (1, 2, 1, 1)"));
  write_npy(means, {{1, 2, 1, 1}, {1, NAN}});
  EXPECT_THAT(error(), HasSubstr(means.string() + ": a mean is not finite"));
  write_npy(means, {{1, 2, 1, 1}, {1, 2}});
  for (const double bad : {0.0, -1.0, double(INFINITY), double(NAN)}) {
    write_npy(deviations, {{1, 2, 1, 1}, {1, bad}});
    EXPECT_THAT(error(), HasSubstr(deviations.string() + ": a standard deviation"));
  }
}

TEST_F(FieldsTest, SaysWhichTimeStepIsNotFinite) {
  {
    hdf5::Writer writer(at("test/1993.h5"), "fields", {3, 2, 4, 8});
    std::vector<float> values(64, 1);
    writer.write(0, values.data());
    writer.write(1, values.data());
    values[40] = NAN;
    writer.write(2, values.data());
    writer.close();
  }
  const auto fields = open("test");
  EXPECT_NO_THROW(fields.fetch({0}));
  EXPECT_THAT(error_of([&] { fields.fetch({1}); }),
              AllOf(HasSubstr("1993.h5: channel 1 of time step 2"), HasSubstr("not finite")));
}

}  // namespace
}  // namespace tasks::weather
