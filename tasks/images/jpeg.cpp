#include "jpeg.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <turbojpeg.h>

#include <fstream>
#include <memory>

#include "tasks/options.hpp"

namespace tasks::images {
namespace {

// More than any photograph has: a damaged header must not ask for all memory.
constexpr int64_t kMostPixels = int64_t{1} << 26;
constexpr int64_t kMostBytes = int64_t{1} << 28;

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, Destroy>;

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw Error(fmt::format("{}: {}. Copy the file again from where it came from, or delete it.",
                          name, what));
}

std::string read_bytes(const std::filesystem::path& file) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(file, failure);
  if (failure) throw Error(fmt::format("{}: {}", file.string(), failure.message()));
  if (size > static_cast<uintmax_t>(kMostBytes)) fail(file.string(), "too large for a picture");
  std::string bytes(size, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream) throw Error(fmt::format("{}: cannot be read", file.string()));
  return bytes;
}

}  // namespace

at::Tensor decode_jpeg(const std::string& bytes, const std::string& name) {
  if (bytes.empty()) fail(name, "the file is empty");
  // A new one for each picture: one that met a damaged file may take the next, whole one for
  // damaged as well.
  const Handle handle(tjInitDecompress());
  auto* const decode = handle.get();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decode, data, bytes.size(), &width, &height, &subsampling, &colours) !=
      0) {
    fail(name, fmt::format("not a JPEG, or a damaged one ({})", tjGetErrorStr2(decode)));
  }
  if (int64_t{width} * height > kMostPixels) {
    fail(name, fmt::format("its header says {} x {} pixels; the limit is {} million", width, height,
                           kMostPixels >> 20));
  }
  auto picture = at::empty({height, width, 3}, at::kByte);
  // A file of a few bytes may ask for endless scans, each over the whole picture.
  if (tjDecompress2(decode, data, bytes.size(), picture.mutable_data_ptr<uint8_t>(), width, 0,
                    height, TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0) {
    fail(name, fmt::format("a damaged JPEG ({})", tjGetErrorStr2(decode)));
  }
  return picture;
}

at::Tensor read_jpeg(const std::filesystem::path& file) {
  return decode_jpeg(read_bytes(file), file.string());
}

std::string encode_jpeg(const at::Tensor& picture, int quality) {
  static thread_local const Handle encoder(tjInitCompress());
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg-turbo's type
  const int failed =
      tjCompress2(encoder.get(), picture.const_data_ptr<uint8_t>(),
                  static_cast<int>(picture.size(1)), 0, static_cast<int>(picture.size(0)), TJPF_RGB,
                  &bytes, &size, TJSAMP_444, quality, TJFLAG_ACCURATEDCT);
  std::string file;
  if (failed == 0) file.assign(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  if (failed != 0) throw Error(fmt::format("a JPEG: {}", tjGetErrorStr2(encoder.get())));
  return file;
}

void write_jpeg(const std::filesystem::path& file, const at::Tensor& picture, int quality) {
  std::ofstream stream(file, std::ios::binary);
  stream << encode_jpeg(picture, quality);
  stream.close();
  if (!stream) {
    throw Error(fmt::format("{}: cannot be written; is the disk full?", file.string()));
  }
}

}  // namespace tasks::images
