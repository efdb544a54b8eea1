#include "parallel/whole_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

namespace tessera {

void settle(FlatUnit& unit) {
  unit.settle_update();
  if (unit.is_on_its_way()) unit.wait_gather();
}

at::Tensor gather_whole(const FlatUnit& unit, const UnitGroups& groups, const at::Tensor& part, at::Device device) {
  if (!unit.is_part() || groups.shard == nullptr) return part;
  const at::Tensor own = part.to(device);
  const at::Tensor whole = at::empty({unit.layout().padded_numel()}, own.options());
  if (whole.numel() > 0) groups.shard->all_gather(whole, own, unit.name())->wait();
  return whole;
}

void replace_values(FlatUnit& unit, const at::Tensor& values) {
  const at::NoGradGuard no_gradients;
  settle(unit);
  unit.release();
  const at::Tensor own = values.narrow(0, unit.range().begin, unit.range().numel());
  unit.master().copy_(own);
  if (unit.compute_copy().defined()) unit.compute_copy().copy_(own);
  unit.take_update();
}

at::Tensor slot_of(const at::Tensor& whole, const FlatSlot& slot) {
  return whole.narrow(0, slot.offset, slot.numel).view(slot.shape);
}

}  // namespace tessera
