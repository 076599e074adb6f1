// Where the library that reads archives was not found.
#include "data/sets.hpp"
#include "support/error.hpp"

namespace checker::data {

void fill(const Set& /*set*/, const std::filesystem::path& sources,
          const std::filesystem::path& /*into*/) {
  throw Error(
      "This checker was built without libarchive, which unpacks the data. Fix: sudo apt-get "
      "install libarchive-dev (on a cluster: module load libarchive), then ./workbook build, then "
      "this command again. The fetched files are kept in " +
      sources.string() + ".");
}

}  // namespace checker::data
