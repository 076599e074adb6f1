#pragma once
/// HDF5 files as other programs write them.
#include <filesystem>
#include <string>

namespace tasks::weather {

/// How a file differs from ours. Its numbers are number_at()'s of file 0, [3, 2, 4, 8], in the
/// oldest format, as h5py writes it.
enum class Foreign {
  old_format,
  chunked,
  user_block,  ///< something else precedes what is HDF5
  compressed,  ///< shuffled, and by zlib
  big_endian,  ///< fp32 all the same
  doubles,
  integers,
  elsewhere,      ///< the numbers lie in another file
  virtual_one,    ///< the dataset is made of others
  group,          ///< 'fields' is a folder
  dangling_link,  ///< 'fields' is the name of something in a file that is not there
};
void write_foreign(const std::filesystem::path& file, Foreign what);

/// Whether the file's root group or its 'fields' carries the time at which it was written.
bool carries_a_time(const std::filesystem::path& file);

}  // namespace tasks::weather
