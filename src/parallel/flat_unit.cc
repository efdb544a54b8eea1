#include "parallel/flat_unit.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace tessera {
namespace {

std::vector<FlatLayout::Entry> entries_of(const std::vector<UnitParameter>& parameters) {
  std::vector<FlatLayout::Entry> entries;
  for (const UnitParameter& p : parameters) entries.push_back({p.name, p.parameter.sizes().vec(), p.group});
  return entries;
}

}  // namespace

FlatUnit::FlatUnit(std::string name, const std::vector<UnitParameter>& parameters, const UnitCommon& common,
                   const ParameterSource& first_values, bool sync_from_first)
    : context_(std::make_shared<UnitContext>(
          UnitContext{common, std::move(name), FlatLayout(entries_of(parameters), common.groups.num_shards())})) {
  std::vector<at::Tensor> by_slot;
  for (const std::size_t entry : layout().entry_of_slot()) by_slot.push_back(parameters[entry].parameter);
  at::NoGradGuard no_gradients;
  values_ = std::make_unique<UnitValues>(context_, by_slot, first_values, sync_from_first);
  gradient_ = std::make_unique<UnitGradient>(context_, by_slot);
}

void FlatUnit::begin_reduce(bool last_micro_step) {
  if (last_micro_step) values_->wait_for_update();  // it may still read the previous step's gradient
  gradient_->begin_reduce(last_micro_step);
}

void FlatUnit::finish_update() {
  values_->publish_update().wait();
  if (is_on_its_way()) wait_gather();
}

void FlatUnit::replace_values(const at::Tensor& values) {
  const at::NoGradGuard no_gradients;
  finish_update();
  forget_gradient();
  values_->replace(values);
}

void FlatUnit::replace_part(const at::Tensor& values) {
  const at::NoGradGuard no_gradients;
  finish_update();
  forget_gradient();
  values_->replace_part(values);
}

void FlatUnit::adopt_update(std::shared_future<void> pending) {
  forget_gradient();
  values_->adopt_update(std::move(pending));
}

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

}  // namespace tessera
