// TensorBoard's event files, written without protocol buffers and without TensorFlow.
//
// A file is a sequence of TFRecords. Each holds one Event, a message of protocol buffers, and each
// Event here holds one value: a scalar, a histogram or a text. Numbers are little-endian.
//
// Sources:
//   TFRecord   tensorflow/core/lib/io/record_writer.h, tensorflow/core/lib/hash/crc32c.h
//   encoding   https://protobuf.dev/programming-guides/encoding
//   messages   tensorflow/core/util/event.proto; summary.proto, histogram.proto, tensor.proto and
//              types.proto in tensorflow/core/framework
#include "monitor/event_file.hpp"

#include <array>
#include <bit>

namespace checker::monitor {

namespace {

template <class Number>
std::string raw(Number number) {
  static_assert(std::endian::native == std::endian::little, "these files are little-endian");
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A message of protocol buffers. Each field is a key, which holds the field's number and how its
// value is encoded, then the value. A message within a message is a field of bytes.
class Message {
 public:
  Message& add(int field, double value) { return add(field, Wire::fixed64, raw(value)); }
  Message& add(int field, float value) { return add(field, Wire::fixed32, raw(value)); }
  Message& add(int field, uint64_t value) { return add(field, Wire::varint, varint(value)); }
  Message& add(int field, std::string_view bytes) {
    return add(field, Wire::bytes, varint(bytes.size()).append(bytes));
  }
  Message& add(int field, const Message& message) { return add(field, message.bytes()); }
  // "packed": the values one behind the other.
  Message& add(int field, const std::vector<double>& values) {
    std::string packed;
    for (const double value : values) packed += raw(value);
    return add(field, std::string_view(packed));
  }

  std::string_view bytes() const { return bytes_; }

 private:
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  Message& add(int field, Wire wire, std::string_view value) {
    bytes_ += varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
    bytes_ += value;
    return *this;
  }

  // Seven bits a byte, the lowest first; the highest bit says that another byte follows.
  static std::string varint(uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
    return text += static_cast<char>(value);
  }

  std::string bytes_;
};

// The numbers of the fields, by message, as the .proto files name them.
namespace field {
enum Event { wall_time = 1, step = 2, file_version = 3, summary = 5 };
enum Summary { value = 1 };
enum Value { tag = 1, simple_value = 2, histo = 5, tensor = 8, metadata = 9 };
enum HistogramProto { min = 1, max, num, sum, sum_squares, bucket_limit, bucket };
enum SummaryMetadata { plugin_data = 1 };
enum PluginData { plugin_name = 1 };
enum TensorProto { dtype = 1, tensor_shape = 2, string_val = 8 };
}  // namespace field
constexpr uint64_t kString = 7;  // DT_STRING

Message event_of(double wall, int64_t step, const Message& value) {
  Message event;
  event.add(field::wall_time, wall).add(field::step, static_cast<uint64_t>(step));
  return event.add(field::summary, Message().add(field::value, value));
}

constexpr std::array<uint32_t, 256> crc32c_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, its bits reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table.at(i) = value;
  }
  return table;
}

// A checksum of data that itself holds checksums is weak, so TFRecords store them changed.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

}  // namespace

// RFC 3720, appendix B.4.
uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc32c_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ table.at((crc ^ static_cast<unsigned char>(c)) & 0xff);
  }
  return ~crc;
}

EventFile::EventFile(double wall) {
  Message event;
  event.add(field::wall_time, wall).add(field::file_version, std::string_view("brain.Event:2"));
  add_record(event.bytes());
}

void EventFile::scalar(double wall, int64_t step, std::string_view tag, float value) {
  Message scalar;
  scalar.add(field::tag, tag).add(field::simple_value, value);
  add_record(event_of(wall, step, scalar).bytes());
}

void EventFile::histogram(double wall, int64_t step, std::string_view tag,
                          const Histogram& histogram) {
  Message buckets, value;
  buckets.add(field::min, histogram.least).add(field::max, histogram.most);
  buckets.add(field::num, histogram.count).add(field::sum, histogram.sum);
  buckets.add(field::sum_squares, histogram.sum_of_squares);
  buckets.add(field::bucket_limit, histogram.limits).add(field::bucket, histogram.counts);
  value.add(field::tag, tag).add(field::histo, buckets);
  add_record(event_of(wall, step, value).bytes());
}

// A text is a tensor of one string, which the plugin "text" shows.
void EventFile::text(double wall, std::string_view tag, std::string_view markdown) {
  Message plugin, tensor, value;
  plugin.add(field::plugin_name, std::string_view("text"));
  tensor.add(field::dtype, kString).add(field::tensor_shape, Message());  // no dimension
  tensor.add(field::string_val, markdown);
  value.add(field::tag, tag).add(field::tensor, tensor);
  value.add(field::metadata, Message().add(field::plugin_data, plugin));
  add_record(event_of(wall, 0, value).bytes());
}

// A TFRecord: the length, its checksum, the data, its checksum.
void EventFile::add_record(std::string_view data) {
  const auto length = raw(static_cast<uint64_t>(data.size()));
  bytes_ += length;
  bytes_ += raw(masked(crc32c(length)));
  bytes_ += data;
  bytes_ += raw(masked(crc32c(data)));
}

}  // namespace checker::monitor
