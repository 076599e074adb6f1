#pragma once
#include <termios.h>

#include <optional>

namespace checker {

/// While it lives, keys of the terminal on standard input come one by one and are not shown. The
/// terminal is as before afterwards. Signals must be watched meanwhile (SignalWatch): one that ends
/// the program at once would leave the terminal as it is.
class Keyboard {
 public:
  Keyboard();
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  /// The next key that waits; nothing if none does. 'q' where the terminal is gone.
  static std::optional<char> read();

 private:
  termios before_{};
};

}  // namespace checker
