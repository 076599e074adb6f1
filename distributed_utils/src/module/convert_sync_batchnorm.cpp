#include <fmt/format.h>
#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <string>
#include <vector>

#include "distributed_utils/error.hpp"
#include "distributed_utils/sync_batch_norm.hpp"

namespace distributed_utils {
namespace {

using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNorm2dImpl;
using torch::nn::BatchNorm3dImpl;
using torch::nn::Module;
using torch::nn::SequentialImpl;

/// What is to be done, once all of the module was looked at.
using Changes = std::vector<std::function<void()>>;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(
      fmt::format("convert_sync_batchnorm: '{}' {}. Fix: give that module a member of type "
                  "SyncBatchNorm2d, which is a BatchNorm2d after synchronize(false).",
                  name, why));
}

/// Throws Error for what must not be left as it is.
void check_stays(const std::shared_ptr<Module>& module, const std::string& name) {
  if (std::dynamic_pointer_cast<BatchNorm2dImpl>(module)) {
    refuse(name, "is a BatchNorm2d outside a Sequential, so its parent holds it by its type");
  }
  if (std::dynamic_pointer_cast<BatchNorm1dImpl>(module) ||
      std::dynamic_pointer_cast<BatchNorm3dImpl>(module)) {
    refuse(name, "is a BatchNorm for inputs of other than 4 dimensions");
  }
}

void collect(const std::shared_ptr<Module>& module, const std::string& prefix, const Group& group,
             Changes& changes) {
  if (const auto own = std::dynamic_pointer_cast<SyncBatchNorm2dImpl>(module)) {
    changes.emplace_back([own, group] {
      own->set_group(group);
      own->synchronize(true);
    });
  }
  const auto sequential = std::dynamic_pointer_cast<SequentialImpl>(module);
  size_t place = 0;
  for (const auto& child : module->named_children()) {
    const auto former = std::dynamic_pointer_cast<BatchNorm2dImpl>(child.value());
    if (sequential && former) {
      changes.emplace_back([sequential, former, place, key = child.key(), group] {
        const auto next = std::make_shared<SyncBatchNorm2dImpl>(*former, group);
        // A Sequential has its modules twice: to run them, and to find their parameters.
        *(sequential->begin() + static_cast<int64_t>(place)) = torch::nn::AnyModule(next);
        sequential->replace_module(key, next);
      });
    } else {
      check_stays(child.value(), prefix + child.key());
      collect(child.value(), prefix + child.key() + ".", group, changes);
    }
    ++place;
  }
}

}  // namespace

std::shared_ptr<Module> convert_sync_batchnorm(const std::shared_ptr<Module>& module,
                                               const Group& group) {
  if (const auto former = std::dynamic_pointer_cast<BatchNorm2dImpl>(module)) {
    return std::make_shared<SyncBatchNorm2dImpl>(*former, group);
  }
  check_stays(module, module->name());
  Changes changes;
  collect(module, "", group, changes);
  for (const auto& change : changes) change();
  return module;
}

}  // namespace distributed_utils
