#include "foreign.hpp"

#include <hdf5.h>

#include <array>
#include <vector>

#include "written.hpp"

namespace tasks::weather {
namespace {

constexpr std::array<hsize_t, 4> kShape{3, 2, 4, 8};
constexpr size_t kNumbers = 3 * 2 * 4 * 8;

hid_t type_of(Foreign what) {
  if (what == Foreign::doubles) return H5T_IEEE_F64LE;
  if (what == Foreign::integers) return H5T_STD_I32LE;
  return what == Foreign::big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
}

hid_t made_as(Foreign what, const std::filesystem::path& file, hid_t space) {
  const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
  constexpr std::array<hsize_t, 4> chunk{1, 2, 4, 8};
  if (what == Foreign::chunked || what == Foreign::compressed) H5Pset_chunk(made, 4, chunk.data());
  if (what == Foreign::compressed) {
    H5Pset_shuffle(made);
    H5Pset_deflate(made, 1);
  }
  if (what == Foreign::elsewhere) {
    H5Pset_external(made, (file.string() + ".raw").c_str(), 0, kNumbers * sizeof(float));
  }
  if (what == Foreign::virtual_one) {
    H5Pset_virtual(made, space, (file.string() + ".part").c_str(), "fields", space);
  }
  return made;
}

}  // namespace

void write_foreign(const std::filesystem::path& file, Foreign what) {
  const hid_t created = H5Pcreate(H5P_FILE_CREATE);
  if (what == Foreign::user_block) H5Pset_userblock(created, 512);
  const hid_t opened = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, created, H5P_DEFAULT);
  H5Pclose(created);
  if (what == Foreign::group) {
    H5Gclose(H5Gcreate2(opened, "fields", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  } else if (what == Foreign::dangling_link) {
    H5Lcreate_external("none.h5", "fields", opened, "fields", H5P_DEFAULT, H5P_DEFAULT);
  } else {
    const hid_t space = H5Screate_simple(4, kShape.data(), nullptr);
    const hid_t made = made_as(what, file, space);
    const hid_t dataset =
        H5Dcreate2(opened, "fields", type_of(what), space, H5P_DEFAULT, made, H5P_DEFAULT);
    std::vector<float> values(kNumbers);
    for (size_t i = 0; i < kNumbers; ++i) {
      values[i] = number_at(0, static_cast<int64_t>(i / 64), static_cast<int64_t>(i % 64));
    }
    if (what != Foreign::virtual_one) {
      H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }
    H5Dclose(dataset);
    H5Pclose(made);
    H5Sclose(space);
  }
  H5Fclose(opened);
}

bool carries_a_time(const std::filesystem::path& file) {
  const auto tracks = [](hid_t made) {
    hbool_t times = false;
    H5Pget_obj_track_times(made, &times);
    H5Pclose(made);
    return times;
  };
  const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t root = H5Gopen2(opened, "/", H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(opened, "fields", H5P_DEFAULT);
  const bool of_root = tracks(H5Gget_create_plist(root));
  const bool of_dataset = tracks(H5Dget_create_plist(dataset));
  H5Dclose(dataset);
  H5Gclose(root);
  H5Fclose(opened);
  return of_root || of_dataset;
}

}  // namespace tasks::weather
