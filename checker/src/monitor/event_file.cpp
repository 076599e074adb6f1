#include "monitor/event_file.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace checker::monitor {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0);
    table.at(i) = value;
  }
  return table;
}

// TFRecords mask their sums, because sums of what holds sums are weak.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

template <class Number>
void append_raw(std::string& to, Number number) {
  static_assert(std::endian::native == std::endian::little, "these files are little-endian");
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_key(std::string& to, uint64_t field, Wire wire) {
  append_varint(to, field << 3 | static_cast<uint64_t>(wire));
}
void append_bytes(std::string& to, uint64_t field, std::string_view value) {
  append_key(to, field, Wire::bytes);
  append_varint(to, value.size());
  to += value;
}
void append_double(std::string& to, uint64_t field, double value) {
  append_key(to, field, Wire::fixed64);
  append_raw(to, value);
}
void append_float(std::string& to, uint64_t field, float value) {
  append_key(to, field, Wire::fixed32);
  append_raw(to, value);
}
void append_doubles(std::string& to, uint64_t field, const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) append_raw(packed, value);
  append_bytes(to, field, packed);
}
void append_integer(std::string& to, uint64_t field, uint64_t value) {
  append_key(to, field, Wire::varint);
  append_varint(to, value);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = make_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ table.at((crc ^ static_cast<unsigned char>(c)) & 0xff);
  }
  return ~crc;
}

EventFile::EventFile(double wall) {
  std::string event;
  append_double(event, 1, wall);            // Event.wall_time
  append_bytes(event, 3, "brain.Event:2");  // Event.file_version
  add_record(event);
}

void EventFile::scalar(double wall, int64_t step, std::string_view tag, float value) {
  std::string summary_value;
  append_bytes(summary_value, 1, tag);    // Value.tag
  append_float(summary_value, 2, value);  // Value.simple_value
  add_event(wall, step, summary_value);
}

void EventFile::histogram(double wall, int64_t step, std::string_view tag,
                          const Histogram& histogram) {
  std::string proto, summary_value;
  append_double(proto, 1, histogram.least);           // HistogramProto.min
  append_double(proto, 2, histogram.most);            // HistogramProto.max
  append_double(proto, 3, histogram.count);           // HistogramProto.num
  append_double(proto, 4, histogram.sum);             // HistogramProto.sum
  append_double(proto, 5, histogram.sum_of_squares);  // HistogramProto.sum_squares
  append_doubles(proto, 6, histogram.limits);         // HistogramProto.bucket_limit
  append_doubles(proto, 7, histogram.counts);         // HistogramProto.bucket
  append_bytes(summary_value, 1, tag);                // Value.tag
  append_bytes(summary_value, 5, proto);              // Value.histo
  add_event(wall, step, summary_value);
}

void EventFile::text(double wall, std::string_view tag, std::string_view markdown) {
  std::string plugin, metadata, tensor, summary_value;
  append_bytes(plugin, 1, "text");           // PluginData.plugin_name
  append_bytes(metadata, 1, plugin);         // SummaryMetadata.plugin_data
  append_integer(tensor, 1, 7);              // TensorProto.dtype: DT_STRING
  append_bytes(tensor, 2, "");               // TensorProto.tensor_shape: a scalar
  append_bytes(tensor, 8, markdown);         // TensorProto.string_val
  append_bytes(summary_value, 1, tag);       // Value.tag
  append_bytes(summary_value, 8, tensor);    // Value.tensor
  append_bytes(summary_value, 9, metadata);  // Value.metadata
  add_event(wall, 0, summary_value);
}

void EventFile::add_event(double wall, int64_t step, std::string_view summary_value) {
  std::string summary, event;
  append_bytes(summary, 1, summary_value);                // Summary.value
  append_double(event, 1, wall);                          // Event.wall_time
  append_integer(event, 2, static_cast<uint64_t>(step));  // Event.step
  append_bytes(event, 5, summary);                        // Event.summary
  add_record(event);
}

void EventFile::add_record(std::string_view data) {
  std::string length;
  append_raw(length, static_cast<uint64_t>(data.size()));
  bytes_ += length;
  append_raw(bytes_, masked(crc32c(length)));
  bytes_ += data;
  append_raw(bytes_, masked(crc32c(data)));
}

}  // namespace checker::monitor
