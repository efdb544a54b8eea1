#include "parallel/module_buffers.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "core/error.h"

namespace tessera {
ModuleBuffers::ModuleBuffers(World& world, torch::nn::Module& model, at::Device device) : world_(world) {
  const at::NoGradGuard no_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> of_type;
  std::unordered_set<const c10::TensorImpl*> taken;
  for (const auto& item : model.named_buffers()) {
    const at::Tensor& buffer = item.value();
    if (!buffer.defined() || !taken.insert(buffer.unsafeGetTensorImpl()).second) continue;
    if (buffer.is_meta()) {
      throw UsageError(
          fmt::format("buffer {} is on the meta device and has no values: create it on a real device", item.key()));
    }
    of_type[buffer.scalar_type()].push_back(buffer);
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

// Sent as bytes, whatever the type.
void ModuleBuffers::take_from_first() {
  if (world_.size() == 1) return;
  for (const at::Tensor& flat : flat_) {
    if (flat.numel() > 0) world_.all().broadcast(flat.view(at::kByte), 0, "buffers")->wait();
  }
}

}  // namespace tessera
