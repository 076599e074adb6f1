#pragma once
/// A terminal made for a test.
#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <functional>
#include <string>

#include "process/descriptor.hpp"

namespace checker::testing {

class Terminal {
 public:
  Terminal(int rows, int columns);
  /// Ends the program if it still runs.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// The side on which programs run.
  int descriptor() const { return inner_.get(); }
  /// Runs a program's main function in a process whose terminal this is.
  void run(const std::function<int()>& program);
  void type(const std::string& keys) const;
  /// Everything shown so far, once it holds this text; fails the test after some seconds without.
  std::string wait_for(const std::string& text);
  /// Forgets what was shown.
  void forget() { shown_.clear(); }
  void signal(int number) const;
  /// Waits for the end of the program: its exit status, as a shell says it.
  int end();
  termios settings() const;

 private:
  bool read(std::chrono::milliseconds time);

  Descriptor outer_, inner_;
  std::string shown_;
  pid_t pid_ = -1;
};

}  // namespace checker::testing
