#pragma once
/// Hand-ins that want something else than points. Each is shown to do its harm where the
/// protections that it aims at are off, and to do none in the box as it is.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "box_fixture.hpp"
#include "grade/worker.hpp"

namespace checker::testing {

/// In the texts INSTRUCTOR is a folder of the instructor's, PROCESS the number of a process of his,
/// PORT one on which he listens, SOCKET the name of an abstract socket of his, PROJECT the course's
/// folder and BUILD its build folder.
struct Attack {
  const char* name;
  const char* code;                       ///< of main(); returns 77 if it got what it wanted
  std::vector<bool Protections::*> aims;  ///< what keeps it from doing harm
  const char* before = "";                ///< stands before main()
};

/// A whole program, with what it needs of the system's headers.
std::string program_of(const std::string& before, const std::string& main);

inline void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }
inline std::string name_of(const ::testing::TestParamInfo<Attack>& info) { return info.param.name; }

/// Somebody whose things are worth an attack, and whom a box must guard.
class Instructor {
 public:
  explicit Instructor(std::filesystem::path folder);
  ~Instructor();
  Instructor(const Instructor&) = delete;
  Instructor& operator=(const Instructor&) = delete;

  /// A text with the places of his things in it.
  std::string filled(std::string text) const;
  /// All that lies in his folder, to be compared.
  std::string belongings() const;

 private:
  std::filesystem::path folder_;
  int process_ = 0, listening_ = -1, socket_ = -1;
  uint16_t port_ = 0;
};

/// What is left where these are off, and what must be off with them.
Protections without(const std::vector<bool Protections::*>& aims);

/// The judgement's user, whom nobody else is: tests run side by side.
uint32_t hostile_user();

/// What a hand-in's judgement has left on this machine: processes, mounts, control groups.
std::string left_behind();

class HostileTest : public BoxedTest {
 protected:
  void SetUp() override;

  /// A grading task for what lies in the folder "hand-in", with limits that are soon reached.
  grade::Task task() const;
  /// All lines that the worker says, a process of its own as always, or why it cannot.
  std::string judged(grade::Task task) const;
  /// The same of a hand-in that is this program. built_once: the next one, of the same text, is not
  /// built again.
  std::string judged(const std::string& program, const Protections& protections,
                     bool built_once) const;
  /// The finding and no more: what a student is told.
  static void expect_no_points(const std::string& said);

  std::filesystem::path instructors() const { return folder_.path() / "instructor"; }
};

}  // namespace checker::testing
