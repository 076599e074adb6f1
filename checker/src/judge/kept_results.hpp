#pragma once
/// Keeps the results of judging the catalogue, so that what has not changed need not be judged
/// again, and published figures can be held against them.
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "judge/catalogue_run.hpp"
#include "support/project.hpp"

namespace checker {

struct KeptResult {
  int todo = 0;
  std::string name;
  std::string form;    ///< "solution", "student", "whole"
  std::string device;  ///< "cpu", "cuda"
  std::string kind;    ///< "trainer", "job"
  std::string wanted;  ///< "rejected", "accepted", "states"
  bool as_wanted = false, blamed_rightly = false;
  double deviation = 0;  ///< see SampleResult
  std::string findings;  ///< "TODO 8 gradients_summed", or empty
  std::string key;       ///< of all that the verdict depends on
  std::string commit;    ///< that it was judged at; empty where git does not tell
};

/// A table in a text file, a line for each result.
class KeptResults {
 public:
  /// Reads the file; there need not be one. Throws Error "file:line: what".
  explicit KeptResults(std::filesystem::path file);

  /// Replaces an earlier one of the same sample.
  void add(KeptResult result);
  /// The same, and the file gets a line more. Several processes may do so. Throws Error if the file
  /// cannot be written.
  void keep(const KeptResult& result);
  /// The result of this sample on this device with this key; null if there is none.
  const KeptResult* find(const Sample& sample, const std::string& device,
                         const std::string& key) const;
  std::vector<KeptResult> all() const;
  /// The file holds each of them once. Throws Error if it cannot be written.
  void write() const;

 private:
  using Place = std::tuple<int, std::string, std::string, std::string>;

  std::filesystem::path file_;
  std::map<Place, KeptResult> results_;
};

/// What results add up to. Unfinished work counts as right: each of its TODOs must stand as it
/// does.
struct Tally {
  size_t wrong = 0, rejected = 0, blamed = 0, right = 0, accepted = 0;
  void add(const KeptResult& result);
};

/// The results that belong to the repository.
std::filesystem::path published_results(const Project& project);

/// Makes the keys of samples: from the program's text, and from the sources of judge, replay,
/// trainers' tasks and library.
class ResultKeys {
 public:
  ResultKeys(const Project& project, const Course& course);
  std::string of(const Sample& sample, const std::string& device) const;

 private:
  std::string judge_, jobs_;
};

KeptResult kept(const SampleResult& result, const std::string& device, const std::string& key,
                const std::string& commit);

/// The present commit, short, with a + where files differ from it; empty without git.
std::string present_commit(const Project& project);

}  // namespace checker
