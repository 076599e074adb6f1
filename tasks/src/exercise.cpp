#include "tasks/exercise.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "instrumentation/numbers.hpp"
#include "instrumentation/recording.hpp"
#include "instrumentation/tensors.hpp"
#include "tasks/options.hpp"

namespace tasks {
namespace {

using instrumentation::Kind;
namespace recording = instrumentation::recording;

// A process that is forked into ranks has their variables only after it was forked.
uint64_t number_in(const char* variable, uint64_t otherwise) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it meanwhile
  const char* const text = std::getenv(variable);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string in_words(const at::Tensor& tensor) {
  std::string words;
  const auto flat = tensor.detach().to(at::kCPU, at::kDouble).contiguous().flatten();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    words += fmt::format("{}{:g}", i == 0 ? "" : " ", flat.const_data_ptr<double>()[i]);
  }
  return words;
}

}  // namespace

at::Tensor my_numbers(int64_t count) {
  const auto numbers =
      instrumentation::numbers_of_rank(number_in(instrumentation::kNumbersSeed, 1),
                                       number_in("RANK", 0), static_cast<size_t>(count));
  auto tensor = at::tensor(numbers, at::kDouble);
  fmt::println("numbers: {}", in_words(tensor));
  return tensor;
}

void show(std::string_view name, const at::Tensor& result) {
  if (recording::enabled()) {
    const instrumentation::NamedTensor named{std::string(name), result.detach()};
    recording::record(Kind::result, instrumentation::describe_tensors({&named, 1}, true));
  }
  fmt::println("{}: {}", name, in_words(result));
}

void show(std::string_view name, int64_t result) {
  show(name, at::scalar_tensor(result, at::kLong));
}

void write_numbers(const std::filesystem::path& file, const at::Tensor& numbers) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::ofstream(file) << in_words(numbers) << "\n";
}

at::Tensor read_numbers(const std::filesystem::path& file) {
  if (recording::enabled()) recording::record_text(Kind::read, file.filename().string());
  std::string line;
  if (!std::getline(std::ifstream(file), line)) {
    throw Error(file.string() +
                " does not exist, or is empty. Fix: read it after it has been written.");
  }
  std::istringstream words(line);
  std::vector<double> numbers;
  for (double number = 0; words >> number;) numbers.push_back(number);
  return at::tensor(numbers, at::kDouble);
}

}  // namespace tasks
