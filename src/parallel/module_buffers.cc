#include "parallel/module_buffers.h"

#include <ATen/ops/empty.h>

#include <map>
#include <unordered_set>

namespace tessera {
namespace {

constexpr const char* kName = "buffers";

}  // namespace

ModuleBuffers::ModuleBuffers(World& world, torch::nn::Module& model, at::Device device, BufferRule rule)
    : world_(world), rule_(rule) {
  const at::NoGradGuard no_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> of_type;
  std::unordered_set<const c10::TensorImpl*> taken;
  for (at::Tensor& buffer : model.buffers()) {
    if (buffer.defined() && taken.insert(buffer.unsafeGetTensorImpl()).second) {
      of_type[buffer.scalar_type()].push_back(buffer);
    }
  }
  for (auto& [type, buffers] : of_type) {
    std::int64_t numel = 0;
    for (const at::Tensor& buffer : buffers) numel += buffer.numel();
    const at::Tensor flat = flat_.emplace_back(at::empty({numel}, at::dtype(type).device(device)));
    std::int64_t offset = 0;
    for (at::Tensor& buffer : buffers) {
      const at::Tensor view = flat.narrow(0, offset, buffer.numel()).view(buffer.sizes());
      view.copy_(buffer);
      buffer.set_data(view.variable_data());
      offset += buffer.numel();
    }
  }
}

void ModuleBuffers::make_alike() {
  if (rule_ == BufferRule::kLocal || world_.size() == 1) return;
  if (rule_ == BufferRule::kBroadcast) return take_from_first();
  for (const at::Tensor& flat : flat_) {
    const bool has_mean = flat.is_floating_point();
    (has_mean ? world_.all().all_reduce(flat, ReduceOp::AVG, kName) : world_.all().broadcast(flat, 0, kName))->wait();
  }
}

void ModuleBuffers::take_from_first() {
  if (world_.size() == 1) return;
  for (const at::Tensor& flat : flat_) world_.all().broadcast(flat, 0, kName)->wait();
}

}  // namespace tessera
