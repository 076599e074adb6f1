#include "fetched.hpp"

#include <map>
#include <mutex>

namespace tasks {
namespace {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

struct Fetched {
  // Held, so that no other tensor gets this one's address.
  WeakTensor input;
  evidence::Payload samples;
};

struct Register {
  std::mutex mutex;
  std::map<const c10::TensorImpl*, Fetched> by_input;
};

Register& the_register() {
  static auto* const all = new Register;  // leaked: workers fetch until the very end
  return *all;
}

}  // namespace

void remember_fetched(const Batch& batch, evidence::Payload fetched) {
  auto& all = the_register();
  const std::lock_guard lock(all.mutex);
  all.by_input.insert_or_assign(
      batch.input[0].unsafeGetTensorImpl(),
      Fetched{WeakTensor(batch.input[0].getIntrusivePtr()), std::move(fetched)});
}

evidence::Payload fetched_in(const Batch& batch) {
  auto& all = the_register();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_input.find(batch.input[0].unsafeGetTensorImpl());
  return found == all.by_input.end() ? evidence::Payload() : found->second.samples;
}

}  // namespace tasks
