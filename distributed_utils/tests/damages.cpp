#include "damages.hpp"

#include <fstream>
#include <iterator>
#include <random>

namespace damages {

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::remove_all(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

std::vector<Damaged> flips(const std::string& good, int more) {
  const size_t size = good.size();
  std::vector<size_t> places = {0, 1, 7, 8, 9, size / 4, size / 2, size - 65, size - 2, size - 1};
  std::mt19937 random(7);
  for (int i = 0; i < more; ++i) places.push_back(random() % size);
  std::vector<Damaged> result;
  for (const size_t place : places) {
    std::string bytes = good;
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << place % 8));
    result.push_back({"a bit flipped at " + std::to_string(place), bytes});
  }
  return result;
}

std::vector<Damaged> zeros(const std::string& good) {
  std::vector<Damaged> result = {{"all zeros", std::string(good.size(), '\0')}};
  for (const size_t place : {size_t{0}, size_t{8}, good.size() / 2, good.size() - 16}) {
    std::string bytes = good;
    bytes.replace(place, 16, 16, '\0');
    if (bytes != good) result.push_back({"zeros at " + std::to_string(place), bytes});
  }
  return result;
}

std::vector<Damaged> other_lengths(const std::string& good) {
  std::vector<Damaged> result;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, good.size() / 2, good.size() - 1}) {
    result.push_back({"cut to " + std::to_string(size), good.substr(0, size)});
  }
  for (const std::string& tail :
       {std::string(1, '\0'), std::string("\n"), std::string(4096, '\0'), good}) {
    result.push_back({std::to_string(tail.size()) + " bytes behind it", good + tail});
  }
  return result;
}

}  // namespace damages
