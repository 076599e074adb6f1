#pragma once
/// Files that TensorBoard reads. All that the checker knows of their format is in event_file.cpp.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace checker::monitor {

struct Histogram {
  double least = 0, most = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  ///< the upper end of each bucket
  std::vector<double> counts;
};

class EventFile {
 public:
  /// wall: seconds since 1970.
  explicit EventFile(double wall);

  void scalar(double wall, int64_t step, std::string_view tag, float value);
  void histogram(double wall, int64_t step, std::string_view tag, const Histogram& histogram);
  /// In Markdown.
  void text(double wall, std::string_view tag, std::string_view markdown);

  const std::string& bytes() const { return bytes_; }

 private:
  void add_record(std::string_view data);

  std::string bytes_;
};

/// CRC-32C, the checksum of these files.
uint32_t crc32c(std::string_view bytes);

}  // namespace checker::monitor
