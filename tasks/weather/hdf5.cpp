#include "hdf5.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "block.hpp"
#include "tasks/options.hpp"

namespace tasks::weather::hdf5 {

/// What HDF5 calls an id. It is closed under the lock that its owner holds.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close how) : id_(id), close_(how) {}
  ~Handle() { close(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return id_ >= 0; }
  bool close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

namespace {

namespace fs = std::filesystem;

std::mutex& the_lock() {
  static std::mutex lock;
  return lock;
}

/// While one lives, this thread alone calls HDF5, which prints no errors of its own.
class Locked {
 public:
  Locked() : guard_(the_lock()) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5Eclear2(H5E_DEFAULT);
  }

 private:
  std::lock_guard<std::mutex> guard_;
};

herr_t keep_first(unsigned place, const H5E_error2_t* error, void* text) {
  if (place == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

/// What HDF5 says where the last call failed.
std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &keep_first, &text);
  return text.empty() ? "HDF5 gives no reason" : "HDF5 says: " + text;
}

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw Error(fmt::format("{}: {}", file.string(), what));
}

Handle open_for_reading(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) fail(file, "there is no such file");
  Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, /*use=*/false, /*ignore_when_disabled=*/true);
#endif
  Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access), &H5Fclose);
  if (!opened) fail(file, "not a complete HDF5 file. " + reason() + ". Copy or download it again.");
  return opened;
}

void check_type(const fs::path& file, const std::string& name, hid_t dataset) {
  const Handle type(H5Dget_type(dataset), &H5Tclose);
  if (type && H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == sizeof(float)) return;
  fail(file, fmt::format("the numbers of '{}' are not fp32; write them as float32", name));
}

std::vector<int64_t> shape_of(const fs::path& file, const std::string& name, hid_t dataset,
                              size_t dimensions) {
  const Handle space(H5Dget_space(dataset), &H5Sclose);
  const int rank = space ? H5Sget_simple_extent_ndims(space) : -1;
  if (rank < 0) fail(file, fmt::format("the shape of '{}' cannot be read. {}", name, reason()));
  std::vector<hsize_t> sizes(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  if (sizes.size() != dimensions) {
    fail(file, fmt::format("'{}' has the shape [{}], not {} dimensions", name,
                           fmt::join(sizes, ", "), dimensions));
  }
  constexpr hsize_t largest = 1 << 20;
  double numbers = 1;  // as a real number, so that no shape overflows
  for (const auto size : sizes) {
    numbers *= static_cast<double>(size);
    if (size > 0 && size <= largest && numbers < 1e15) continue;
    fail(file, fmt::format("'{}' has the impossible shape [{}]", name, fmt::join(sizes, ", ")));
  }
  return {sizes.begin(), sizes.end()};
}

/// Numbers in other files, or beyond this one's end, are none that we read.
void check_storage(const fs::path& file, const std::string& name, hid_t dataset,
                   const std::vector<int64_t>& shape) {
  const Handle made(H5Dget_create_plist(dataset), &H5Pclose);
  const auto layout = made ? H5Pget_layout(made) : H5D_LAYOUT_ERROR;
  // Compact datasets are tiny, and HDF5 1.10 trusts the lengths in them.
  if ((layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) || H5Pget_external_count(made) > 0) {
    fail(file,
         fmt::format("the numbers of '{}' are stored neither as one block nor as chunks", name));
  }
  // HDF5 1.10 believes that a filter gives as many numbers as it should, and reads what is not
  // there.
  if (H5Pget_nfilters(made) != 0) {
    fail(file, fmt::format("'{}' is compressed, which is not supported; h5repack -f NONE <this "
                           "file> <new file> makes a plain one",
                           name));
  }
  if (layout != H5D_CONTIGUOUS) return;
  uint64_t bytes = sizeof(float);
  for (const auto size : shape) bytes *= static_cast<uint64_t>(size);
  const uint64_t begin = H5Dget_offset(dataset), length = fs::file_size(file);
  if (begin == HADDR_UNDEF || H5Dget_storage_size(dataset) != bytes || begin > length ||
      bytes > length - begin) {
    fail(file, fmt::format("'{}' should have the shape [{}], but the file does not hold as many "
                           "numbers; copy or download it again",
                           name, fmt::join(shape, ", ")));
  }
}

/// What is read or written: one place of the first dimension, or of the first ones.
struct Selection {
  Handle in_file, in_memory;

  Selection(const std::vector<int64_t>& shape, const std::vector<int64_t>& place) {
    const std::vector<hsize_t> all(shape.begin(), shape.end());
    auto counts = all;
    std::vector<hsize_t> begin(all.size(), 0);
    for (size_t i = 0; i < place.size(); ++i) {
      counts[i] = 1;
      begin[i] = static_cast<hsize_t>(place[i]);
    }
    const int rank = static_cast<int>(all.size());
    in_file = Handle(H5Screate_simple(rank, all.data(), nullptr), &H5Sclose);
    in_memory = Handle(H5Screate_simple(rank, counts.data(), nullptr), &H5Sclose);
    H5Sselect_hyperslab(in_file, H5S_SELECT_SET, begin.data(), nullptr, counts.data(), nullptr);
  }
};

/// Where the numbers begin, if they lie as this machine's own in one block.
std::optional<uint64_t> begin_of_block(hid_t dataset) {
  const Handle made(H5Dget_create_plist(dataset), &H5Pclose);
  const Handle type(H5Dget_type(dataset), &H5Tclose);
  if (H5Pget_layout(made) != H5D_CONTIGUOUS || H5Tequal(type, H5T_NATIVE_FLOAT) <= 0) return {};
  return H5Dget_offset(dataset);
}

}  // namespace

struct Dataset::Handles {
  Handle file, dataset;
  std::optional<Block> block;
};

Dataset::Dataset(const fs::path& file, const std::string& name, size_t dimensions) : file_(file) {
  const Locked locked;
  auto handles = std::make_unique<Handles>();
  handles->file = open_for_reading(file);
  if (H5Lexists(handles->file, name.c_str(), H5P_DEFAULT) <= 0) {
    fail(file, fmt::format("there is no dataset '{}' in it", name));
  }
  handles->dataset = Handle(H5Dopen2(handles->file, name.c_str(), H5P_DEFAULT), &H5Dclose);
  if (!handles->dataset) {
    fail(file, fmt::format("'{}' is not a readable dataset. {}", name, reason()));
  }
  check_type(file, name, handles->dataset);
  shape_ = shape_of(file, name, handles->dataset, dimensions);
  check_storage(file, name, handles->dataset, shape_);
  if (const auto begin = begin_of_block(handles->dataset)) handles->block.emplace(file, *begin);
  handles_ = std::move(handles);
}

Dataset::Dataset(Dataset&&) noexcept = default;

Dataset::~Dataset() {
  const Locked locked;
  handles_.reset();
}

void Dataset::read(int64_t first, int64_t second, float* values) const {
  if (first < 0 || first >= shape_[0] || second < 0 || second >= shape_[1]) {
    fail(file_, fmt::format("place [{}, {}] does not exist: there are [{}, {}]", first, second,
                            shape_[0], shape_[1]));
  }
  if (handles_->block) {
    size_t bytes = sizeof(float);
    for (size_t i = 2; i < shape_.size(); ++i) bytes *= static_cast<size_t>(shape_[i]);
    const auto place = static_cast<uint64_t>(first * shape_[1] + second);
    return handles_->block->read(place * bytes,
                                 std::as_writable_bytes(std::span(values, bytes / sizeof(float))));
  }
  const Locked locked;
  const Selection selection(shape_, {first, second});
  if (H5Dread(handles_->dataset, H5T_NATIVE_FLOAT, selection.in_memory, selection.in_file,
              H5P_DEFAULT, values) < 0) {
    fail(file_, fmt::format("place {} cannot be read. {}. Copy or download the file again.", first,
                            reason()));
  }
}

struct Writer::Handles {
  Handle file, dataset;
};

Writer::Writer(const fs::path& file, const std::string& name, const std::vector<int64_t>& shape)
    : file_(file), shape_(shape) {
  const Locked locked;
  auto handles = std::make_unique<Handles>();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  // The formats of 1.8 and later have checksums.
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, /*use=*/false, /*ignore_when_disabled=*/true);
#endif
  // Equal data make equal files, whenever they are written: neither the file's root group nor the
  // dataset carries a time.
  const Handle root(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
  H5Pset_obj_track_times(root, false);
  const Handle made(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  H5Pset_obj_track_times(made, false);
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
                     &H5Sclose);
  handles->file = Handle(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, root, access), &H5Fclose);
  if (!handles->file) fail(file, "cannot be written. " + reason());
  handles->dataset = Handle(H5Dcreate2(handles->file, name.c_str(), H5T_IEEE_F32LE, space,
                                       H5P_DEFAULT, made, H5P_DEFAULT),
                            &H5Dclose);
  if (!handles->dataset) fail(file, "cannot be written. " + reason());
  handles_ = std::move(handles);
}

Writer::~Writer() {
  const Locked locked;
  handles_.reset();
}

void Writer::write(int64_t place, const float* values) {
  const Locked locked;
  const Selection selection(shape_, {place});
  if (H5Dwrite(handles_->dataset, H5T_NATIVE_FLOAT, selection.in_memory, selection.in_file,
               H5P_DEFAULT, values) < 0) {
    fail(file_, "cannot be written. " + reason() + ". Is the disk full?");
  }
}

void Writer::close() {
  const Locked locked;
  const bool written = handles_->dataset.close();
  if (!handles_->file.close() || !written) {
    fail(file_, "cannot be written. " + reason() + ". Is the disk full?");
  }
}

}  // namespace tasks::weather::hdf5
