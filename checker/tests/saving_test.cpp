// What is said of models that rank 0 did not save, or saved elsewhere: which epoch is the best is a
// run's luck, so the rule is asked without one.
#include <gmock/gmock.h>

#include "files.hpp"
#include "judge/rules/rules.hpp"
#include "judge/tell.hpp"

namespace checker {
namespace {

using ::testing::Contains;
using testing::course;
using ::testing::HasSubstr;
using ::testing::Not;

// Rank 0 has left these files after two epochs. The second one is the better one.
Finding missing_with(const std::vector<FileContent>& files) {
  RecordedRun recorded;
  recorded.run.world = 1;
  RankSeen rank;
  rank.folder = "/run";
  rank.left_regularly = true;
  rank.saves = {0};
  recorded.run.ranks.push_back(rank);
  ExpectedWorld truth;
  truth.validation = {3, 2};
  truth.ranks.emplace_back();
  for (auto file : files) {
    file.file = "/run" / file.file;
    file.format = "safetensors";
    truth.ranks[0].files.push_back(file);
  }
  const Plan plan;
  const auto& step = course().step("06");
  Symptoms symptoms;
  rules::saving({recorded, truth, plan, course(), step, {"SAVE0"}, {}}, symptoms);
  const auto found = tell(course(), step, symptoms);
  return found.empty() ? Finding{} : found.front();
}

FileContent model(const std::string& file, const std::string& holds = "epoch 2") {
  return {.file = file, .holds = holds, .format = {}};
}

TEST(Saving, NamesTheFileThatIsNotThere) {
  const auto one = missing_with({model("output/model-best.safetensors")});
  EXPECT_EQ(one.id, "model_missing");
  EXPECT_EQ(one.what,
            "The final model is missing: no model-final.safetensors holds the weights of epoch 2.");
  const auto best = missing_with({model("output/model-final.safetensors")});
  EXPECT_THAT(best.what, HasSubstr("The best model is missing: no model-best.safetensors"));
  const auto other = missing_with({model("output/weights.safetensors")});
  EXPECT_THAT(other.what, HasSubstr("one of the best and the final model")) << "which is unknown";
}

TEST(Saving, SeesAModelBesideTheOutputFolder) {
  const auto beside = HasSubstr("model-best.safetensors lies beside the folder");
  EXPECT_THAT(
      missing_with({model("model-best.safetensors"), model("output/x.safetensors", "epoch 1")})
          .evidence,
      Contains(beside));
  EXPECT_THAT(missing_with({model("model-best.safetensors", "initial"),
                            model("output/x.safetensors", "epoch 1")})
                  .evidence,
              Not(Contains(beside)));
  EXPECT_EQ(missing_with(
                {model("output/model-best.safetensors"), model("output/model-final.safetensors")})
                .id,
            "");
}

}  // namespace
}  // namespace checker
