#include "saved.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fingerprints.hpp"

namespace replay {

using nlohmann::json;

namespace {

// How often each element of a model is in the files, and how many of them are in each file.
struct Count {
  std::vector<size_t> of_elements, of_files;

  size_t found() const {
    return static_cast<size_t>(std::ranges::count_if(of_elements, [](size_t n) { return n > 0; }));
  }
};

Count count(const std::vector<SavedFile>& files, const Flat& model) {
  const Fingerprints fingerprints(model, kComputed);
  Count result{.of_elements = std::vector<size_t>(model.size()), .of_files = {}};
  for (const auto& file : files) {
    size_t own = 0;
    for (const double value : file.values.value_or(Flat())) {
      const auto* places = fingerprints.nearest(value);
      if (!places) continue;
      const auto times = [&](size_t element) { return result.of_elements[element]; };
      ++result.of_elements[*std::ranges::min_element(*places, {}, times)];  // of equal ones
      ++own;
    }
    result.of_files.push_back(own);
  }
  return result;
}

}  // namespace

json what_is_saved(const std::vector<SavedFile>& files, const std::vector<Flat>& epochs) {
  Count most;
  size_t epoch = 0;
  std::vector<size_t> found;
  for (size_t i = 0; i < epochs.size(); ++i) {
    auto own = count(files, epochs[i]);
    found.push_back(own.found());
    if (epoch != 0 && found[i] < most.found()) continue;
    most = std::move(own);
    epoch = i + 1;
  }
  const auto here = epoch == 0 ? 0 : found[epoch - 1];
  json result = {
      {"files", json::array()},
      {"epoch", here == 0 ? 0 : epoch},
      {"elements", most.of_elements.size()},
      {"missing", most.of_elements.size() - here},
      {"several", std::ranges::count_if(most.of_elements, [](size_t times) { return times > 1; })},
      {"older", 0}};
  for (size_t i = 0; i < found.size(); ++i) {
    if (i + 1 != epoch) result["older"] = std::max(result["older"].get<size_t>(), found[i]);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    result["files"].push_back({{"file", files[i].path.string()},
                               {"bytes", files[i].bytes},
                               {"readable", files[i].values.has_value()},
                               {"own", epoch == 0 ? 0 : most.of_files[i]}});
  }
  return result;
}

}  // namespace replay
