#include "parallel/whole_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace tessera {

at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device) {
  if (!unit.is_part() || groups.shard == nullptr) return part;
  const at::Tensor own = part.to(device);
  const at::Tensor whole = at::empty({unit.layout().padded_numel()}, own.options());
  if (whole.numel() > 0) groups.shard->all_gather(whole, own, unit.name())->wait();
  return whole;
}

void take_part(const FlatUnit& unit, const at::Tensor& part, const at::Tensor& whole) {
  const at::NoGradGuard no_gradients;
  part.copy_(part_of(whole, unit.updated()));
}

at::Tensor slot_of(const at::Tensor& whole, const FlatSlot& slot) {
  return view_of(whole, slot);
}

}  // namespace tessera
