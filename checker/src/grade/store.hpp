#pragma once
/// Stores all verdicts of a grading in one SQLite file: whatever happens, a result is in there
/// whole or not at all.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict.hpp"

struct sqlite3;

namespace checker::grade {

/// One student's hand-in as far as it has been judged.
struct Stored {
  std::string stamp;                 ///< changes with what was handed in
  bool finished = false;             ///< every step of it is judged
  std::string problem;               ///< why what was handed in cannot be read
  std::vector<std::string> remarks;  ///< what gathering said
  std::string version;
  std::vector<Report> reports;
};

class Store {
 public:
  /// Opens the file, or makes it. Throws Error if it is none of ours.
  explicit Store(const std::filesystem::path& file);

  /// Of the whole grading: "course".
  std::optional<std::string> setting(const std::string& name) const;
  void set(const std::string& name, const std::string& value);

  bool empty() const;
  std::optional<Stored> find(const std::string& student) const;
  /// Starts over with a student: forgets what was stored of him.
  void begin(const std::string& student, const std::string& stamp);
  void gathered(const std::string& student, const Stored& what);
  void add(const std::string& student, const Report& report);
  void finish(const std::string& student, const std::string& problem);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace checker::grade
