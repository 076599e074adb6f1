// Which files a split is read from.
#include "splits.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>

#include "errors.hpp"
#include "parts.hpp"
#include "tasks/options.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::summaries {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Splits : public testing::Test {
 protected:
  std::string split_error() const {
    return error_of([&] { Split(folder_.path(), "train"); });
  }
  /// Whether this build has the module.
  static bool has(const std::string& module) {
    try {
      module == "Arrow" ? for_each_arrow_pair("none", {}) : void(load_sentence_pieces("none"));
    } catch (const Error& error) {
      return std::string(error.what()).find("this build does not have") == std::string::npos;
    }
    return true;
  }

  TemporaryFolder folder_;
};

TEST_F(Splits, ThatAreNotThereAreNamed) {
  EXPECT_THAT(split_error(),
              AllOf(HasSubstr("no train.jsonl, nor train.arrow"), HasSubstr("Fix:")));
  folder_.write("cache-train-0123.arrow", "");
  folder_.write("xsum-train.arrow.incomplete", "");
  EXPECT_THAT(split_error(), HasSubstr("no train.jsonl"));
  EXPECT_THAT(error_of([&] { Split(folder_.path() / "none", "test"); }),
              HasSubstr("is not a folder"));
}

TEST_F(Splits, WithoutOneOfTheirPartsAreNamed) {
  folder_.write("xsum-train-00000-of-00003.arrow", "");
  folder_.write("xsum-train-00002-of-00003.arrow", "");
  EXPECT_THAT(split_error(), HasSubstr("has 2 of the 3 parts of xsum-train. Fix: "));
  folder_.write("xsum-train-00001-of-00003.arrow", "");
  EXPECT_NO_THROW(Split(folder_.path(), "train"));
  folder_.write("cnn-train.arrow", "");
  EXPECT_THAT(split_error(), AllOf(HasSubstr("both cnn-train.arrow and xsum-train-00000"),
                                   HasSubstr("keep one of them")));
}

TEST_F(Splits, AreFoundInFoldersOfTheirName) {
  std::filesystem::create_directory(folder_.path() / "train");
  folder_.write("train/cache-abc.arrow", "");
  EXPECT_THAT(split_error(), HasSubstr("no train.jsonl"));
  folder_.write("train/data-00000-of-00002.arrow", "");
  EXPECT_THAT(split_error(), HasSubstr("has 1 of the 2 parts of data"));
  folder_.write("train/data-00001-of-00002.arrow", "");
  EXPECT_NO_THROW(Split(folder_.path(), "train"));
}

TEST_F(Splits, OfArrowFilesNameTheFile) {
  const auto file = folder_.write("xsum-train.arrow", "no Arrow");
  const auto error = error_of([&] { Split(folder_.path(), "train").for_each({}); });
  EXPECT_THAT(error, AllOf(HasSubstr(file.string()), HasSubstr("Fix:"),
                           HasSubstr(has("Arrow") ? "as Arrow" : "module load Arrow")));
}

TEST_F(Splits, AreNumberedByTheModelThatIsNamed) {
  const auto model = folder_.write("spiece.model", "no model");
  Options options;
  options.task = "summaries";
  options.config =
      folder_.write("mine.yaml", "base: laptop\ndocuments: 20\ntokenizer: " + model.string())
          .string();
  EXPECT_THAT(error_of([&] { make_task(options); }),
              AllOf(HasSubstr(model.string()), HasSubstr("Fix:"), Not(HasSubstr("built-in data")),
                    HasSubstr(has("SentencePiece") ? "not a complete SentencePiece model"
                                                   : "apt-get install libsentencepiece-dev")));
}

}  // namespace
}  // namespace tasks::summaries
