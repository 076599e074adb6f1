#pragma once
#include <string>
#include <vector>

namespace checker {

/// The terminal on standard output as one page that is drawn over. What stood there before is
/// scrolled away, not lost; what was drawn last stays when we leave.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Lines of the terminal; a page is to be shorter by one.
  static size_t rows();
  /// Shows these lines and nothing else; writes only if they differ from the last ones. Lines that
  /// are too long are cut by the terminal.
  void draw(const std::vector<std::string>& lines);

 private:
  std::string last_;
  size_t height_ = 0;
};

}  // namespace checker
