#pragma once
/// Every word of the catalogue's findings in one file, to read them side by side, or to compare
/// what two versions of the checker say.
#include <fstream>
#include <string>

#include "judge/catalogue_run.hpp"

namespace checker {

class EveryWord {
 public:
  /// Throws Error if the file cannot be written.
  explicit EveryWord(const std::string& file);
  void add(const SampleResult& result);

 private:
  std::ofstream file_;
};

}  // namespace checker
