#include "npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>

#include "tasks/options.hpp"

namespace tasks::weather {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
// Statistics have one number a channel: what is larger is another file.
constexpr size_t kLargestFile = 1 << 20;
constexpr size_t kLongestHeader = 4096;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(fmt::format("{}: {}", file.string(), what));
}

std::string read_all(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) fail(file, "there is no such file");
  if (std::filesystem::file_size(file, failure) > kLargestFile) {
    fail(file, "too long for statistics, which have one number a channel");
  }
  std::ifstream in(file, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!in) fail(file, "cannot be read");
  return bytes;
}

/// Where the header begins and how long it is; none for a file without one.
struct Header {
  size_t begin, length;
};

std::optional<Header> find_header(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + 4 || !bytes.starts_with(kMagic)) return {};
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) return {};
  Header header{.begin = version == 1 ? size_t{10} : size_t{12}, .length = byte(8) + 256 * byte(9)};
  if (bytes.size() < header.begin) return {};
  if (version > 1) header.length += 65536 * byte(10) + 65536 * 256 * byte(11);
  if (header.length > bytes.size() - header.begin || header.length > kLongestHeader) return {};
  return header;
}

/// The text behind `key` in the header's dictionary, which NumPy writes in one fixed form.
std::string value_of(const std::string& header, const std::string& key,
                     const std::string& pattern) {
  const std::regex item("'" + key + "': *(" + pattern + ") *[,}]");
  std::smatch found;
  return std::regex_search(header, found, item) ? found[1].str() : std::string();
}

std::vector<int64_t> parse_shape(const std::filesystem::path& file, const std::string& text) {
  const std::regex number("[0-9]+");
  std::vector<int64_t> shape;
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it) {
    if (it->length() > 7) fail(file, "its header has the impossible shape " + text);
    shape.push_back(std::stoll(it->str()));
  }
  if (shape.size() > 8) fail(file, "its header has the impossible shape " + text);
  return shape;
}

}  // namespace

NpyArray read_npy(const std::filesystem::path& file) {
  const auto bytes = read_all(file);
  const auto place = find_header(bytes);
  if (!place) fail(file, "not a complete .npy file; write it with numpy.save");
  const auto header = bytes.substr(place->begin, place->length);
  const auto type = value_of(header, "descr", "'[^']*'");
  if (type != "'<f4'" && type != "'<f8'") {
    fail(file, fmt::format("its numbers have type {}; expected little-endian fp32 or fp64",
                           type.empty() ? "unknown" : type));
  }
  if (value_of(header, "fortran_order", "True|False") != "False") {
    fail(file, "its numbers are not in row-major order; save numpy.ascontiguousarray(...)");
  }
  const auto shape = value_of(header, "shape", R"(\((?:[0-9]+(?:, *[0-9]+)*,?)?\))");
  if (shape.empty()) fail(file, "its header names no shape");
  NpyArray array{.shape = parse_shape(file, shape), .values = {}};
  const size_t size = type == "'<f4'" ? sizeof(float) : sizeof(double);
  // As a real number, so that no shape overflows.
  double numbers = 1;
  for (const auto length : array.shape) numbers *= static_cast<double>(length);
  const size_t begin = place->begin + place->length;
  if (numbers * static_cast<double>(size) != static_cast<double>(bytes.size() - begin)) {
    fail(file, fmt::format("its header names the shape {}, but {} bytes of numbers follow", shape,
                           bytes.size() - begin));
  }
  for (size_t at = begin; at < bytes.size(); at += size) {
    float narrow = 0;
    double wide = 0;
    if (size == sizeof(float)) {
      std::memcpy(&narrow, &bytes[at], size);
      wide = narrow;
    } else {
      std::memcpy(&wide, &bytes[at], size);
    }
    array.values.push_back(wide);
  }
  return array;
}

void write_npy(const std::filesystem::path& file, const NpyArray& array) {
  auto header = fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}",
                            fmt::join(array.shape, ", "));
  // The numbers begin at a multiple of 64 bytes, behind a line's end.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::ofstream out(file, std::ios::binary);
  out << kMagic << '\1' << '\0' << static_cast<char>(header.size() % 256)
      << static_cast<char>(header.size() / 256) << header;
  out.write(reinterpret_cast<const char*>(array.values.data()),
            static_cast<std::streamsize>(array.values.size() * sizeof(double)));
  out.close();
  if (!out) fail(file, "cannot be written. Is the disk full?");
}

}  // namespace tasks::weather
