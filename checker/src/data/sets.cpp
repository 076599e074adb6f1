#include "data/sets.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::data {

std::span<const Set> sets() {
  static const std::vector<Set> all{
      {.name = "imagewoof",
       .about = "12,954 pictures of ten breeds of dogs",
       .size = "about 0.3 GB",
       .terms = "pictures of ImageNet: for research and teaching",
       .options = "--task images --config seed",
       .sources = {{"https://s3.amazonaws.com/fast-ai-imageclas", "imagewoof2-320.tgz",
                    "4e4905ed7643120daaf9bf3b2ef7f3a7e8396d9bdaf254a38c6f01f618b4973d",
                    "FastAI.jl"}},
       .growth = 1.1},
      // The archive of a fixed revision, because later ones need not have it. Its texts become what
      // the hub's own files hold, which only Parquet's libraries could read.
      {.name = "xsum",
       .about = "226,711 articles, each with a summary of one sentence",
       .size = "about 0.3 GB",
       .terms = "texts of the BBC: for research",
       .options = "--task summaries --config t5",
       .sources = {{"https://huggingface.co/datasets/EdinburghNLP/xsum/resolve/"
                    "0f3ea2f2b55fcb11e71fb1e3aec6822e44ddcb0f/data",
                    "XSUM-EMNLP18-Summary-Data-Original.tar.gz",
                    "10b48aa187fc9c904b30f76ca97e2da0de8d3a1238acc26acadef93e2001af90",
                    "Hugging Face's datasets"},
                   {"https://raw.githubusercontent.com/EdinburghNLP/XSum/"
                    "7b95485c3e861d7caff76a8b4c6b3fd3bf7ee9b1/XSum-Dataset",
                    "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json",
                    "9c0c5d8f048a90bd68b19a34e4c30577ed270d3247b2119fa06a04ef46292068",
                    "Hugging Face's datasets"}},
       .growth = 2.2},
      {.name = "era5",
       .about = "the world's weather every six hours, 20 channels of 360 x 720",
       .size = "about 30 GB a year",
       .terms = "ERA5 of Copernicus, prepared by NERSC",
       .options = "--task weather --config bs16",
       .sources = {{"https://portal.nersc.gov/project/dasrepo/pharring/sc23_data", "", "", ""}},
       .has_years = true}};
  return all;
}

const Set& find_set(const std::string& name) {
  const auto all = sets();
  const auto found = std::ranges::find(all, name, &Set::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const auto& set : all) names.push_back(set.name);
  const auto guess = did_you_mean(name, names);
  throw UsageError("Unknown data set: " + name + (guess.empty() ? "." : guess) +
                   " There are: " + join(names, ", ") + ".");
}

}  // namespace checker::data
