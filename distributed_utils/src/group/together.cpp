#include "group/together.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {
namespace {

constexpr char kDone = '+';
constexpr char kFailed = '-';

/// Every rank's text. Gathers lengths first, since collectives want equal shapes.
std::vector<std::string> gather(const Group& group, const std::string& mine) {
  if (get_world_size(group) == 1) return {mine};
  const c10::Device device = group_or_world(group)->getBoundDeviceId().value_or(c10::kCPU);
  const auto size = static_cast<int64_t>(mine.size());
  const at::Tensor sizes =
      all_gather(at::scalar_tensor(size, at::kLong).to(device), group).cpu().contiguous();
  at::Tensor padded = at::zeros({sizes.max().item<int64_t>()}, at::kByte);
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  const at::Tensor all = all_gather(padded.to(device), group).cpu().contiguous();
  std::vector<std::string> texts;
  for (int64_t rank = 0; rank < sizes.numel(); ++rank) {
    texts.emplace_back(static_cast<const char*>(all[rank].const_data_ptr()),
                       sizes[rank].item<int64_t>());
  }
  return texts;
}

std::string done_or_failed(const std::function<std::string()>& work) {
  try {
    return kDone + work();
  } catch (const c10::Error& error) {
    return kFailed + std::string(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

}  // namespace

std::vector<std::string> together(const Group& group, const std::function<std::string()>& work) {
  auto texts = gather(group, done_or_failed(work));
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].front() == kDone) continue;
    const std::string message = texts[rank].substr(1);
    throw Error(texts.size() == 1 ? message : fmt::format("rank {}: {}", rank, message));
  }
  for (auto& text : texts) text.erase(0, 1);
  return texts;
}

}  // namespace distributed_utils::detail
