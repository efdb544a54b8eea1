#include "parallel/unit_values.h"

#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

// The storage object stays the same, so views of it and tensors saved by autograd stay valid.
void resize_storage(const at::Tensor& tensor, std::int64_t bytes) {
  const c10::DeviceGuard there(tensor.device());  // an allocator allocates on the current device
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(static_cast<std::size_t>(bytes)));
  storage->set_nbytes(static_cast<std::size_t>(bytes));
}

}  // namespace

UnitValues::UnitValues(std::shared_ptr<const UnitContext> context, std::vector<at::Tensor> parameters,
                       const ParameterSource& source, bool sync_from_first)
    : context_(std::move(context)), parameters_(std::move(parameters)) {
  place(first_values(source, sync_from_first));
  bind_parameters();
  release();
}

// [padded] float32 on the device: the values that every rank starts with.
at::Tensor UnitValues::first_values(const ParameterSource& source, bool sync_from_first) const {
  const UnitGroups& groups = context_->groups;
  const auto is_first = [](const Group* group) { return group == nullptr || group->rank() == 0; };
  const bool is_received = sync_from_first && !(is_first(groups.shard) && is_first(groups.replicas));
  at::Tensor values = at::zeros({context_->layout.padded_numel()}, context_->on_device(at::kFloat));
  for (std::size_t i = 0; i < parameters_.size() && !is_received; ++i) {
    const FlatSlot& slot = context_->layout.slots()[i];
    if (source) {
      source(slot.name, view_of(values, slot));
    } else if (parameters_[i].is_meta()) {
      throw UsageError(
          fmt::format("parameter {} is on the meta device and has no values: set first_values, or create it on a real "
                      "device",
                      slot.name));
    } else {
      view_of(values, slot).copy_(parameters_[i].detach());
    }
  }
  if (sync_from_first && values.numel() > 0) {
    if (groups.replicas != nullptr) groups.replicas->broadcast(values, 0, context_->name)->wait();
    if (groups.shard != nullptr) groups.shard->broadcast(values, 0, context_->name)->wait();
  }
  return values;
}

// Decides where each copy of the values lives. A copy that would equal another is not made.
void UnitValues::place(const at::Tensor& values) {
  const Placement& row = context_->placement;
  const at::ScalarType compute = context_->types.compute;
  const bool same_type = compute == at::kFloat;
  const auto on_host = [&](const at::Tensor& from) {
    at::Tensor to = context_->link->host_empty(from.numel(), from.scalar_type());
    to.copy_(from);
    return to;
  };
  whole_ = same_type ? values : values.to(compute);
  at::Tensor current = part_of(whole_, context_->updated());  // what the optimizer updates, in the compute type
  if (row.parameters.is_split()) {
    shard_ = row.parameters.is_on_host() ? on_host(part_of(whole_, context_->own_shard()))
                                         : part_of(whole_, context_->own_shard()).clone();
    current = shard_;
  }
  const bool master_is_elsewhere =
      row.optimizer.is_on_host() != (row.parameters.is_split() && row.parameters.is_on_host()) || row.delayed_update;
  if (same_type && !master_is_elsewhere) {
    master_ = {current};
    return;
  }
  const at::Tensor first = part_of(values, context_->updated());
  if (keeps_remainder(context_->types, row, context_->device.is_cuda())) {
    compute_copy_ = updates_go_up() ? on_host(current) : current;
    master_ = {compute_copy_,
               kernels::remainder_of(first, part_of(whole_, context_->updated()), compute_copy_.device())};
    return;
  }
  const bool covers_all = first.numel() == values.numel();
  master_ = {row.optimizer.is_on_host() ? on_host(first) : (covers_all && !same_type ? values : first.clone())};
  if (same_type) return;
  if (!master_is_elsewhere) compute_copy_ = current;
  if (updates_go_up() || row.delayed_update) compute_copy_ = on_host(current);
}

// Uses variable_data(), so autograd's version checks do not see refilling the buffer as a modification.
void UnitValues::bind_parameters() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // A meta parameter must become one of a real device, which set_data alone refuses.
    if (parameters_[i].is_meta()) {
      parameters_[i].unsafeGetTensorImpl()->_change_backend_component_keys(context_->device);
    }
    parameters_[i].set_data(view_of(whole_.variable_data(), context_->layout.slots()[i]));
  }
}

void UnitValues::begin_gather() {
  if (state_ == State::kWhole || state_ == State::kGathering) return;
  const Placement& row = context_->placement;
  if (!row.delayed_update) wait_for_update();
  Group* group = context_->groups.shard;
  if (state_ == State::kSplit) {
    resize_storage(whole_, context_->layout.padded_numel() * static_cast<std::int64_t>(whole_.element_size()));
  }
  state_ = State::kGathering;
  if (second_copy_.defined()) {
    gather_ = context_->groups.second_copy->all_gather(whole_, second_copy_, context_->name);
    return;
  }
  // An upload that publish_update began does not wait for later work on the current stream, so a gather ordered only
  // after that upload would start too early.
  order_after_upload(std::exchange(upload_, {}));
  upload();
  const at::Tensor own =
      row.parameters.is_split() && !row.parameters.is_on_host() ? shard_ : part_of(whole_, context_->own_shard());
  if (group != nullptr && (row.parameters.is_split() || row.optimizer.is_split())) {
    c10::OptionalStreamGuard beside;
    if (upload_.is_pending()) beside.reset_stream(*context_->link->upload_stream());
    gather_ = group->all_gather(whole_, own, context_->name);
  }
}

// Copies what this rank keeps on the host to where gathers read it.
void UnitValues::upload() {
  if (context_->placement.parameters.is_on_host()) {
    upload_ = context_->link->to_device(part_of(whole_, context_->own_shard()), shard_);
  } else if (std::exchange(device_is_behind_, false)) {
    const at::Tensor& newest = compute_copy_.defined() ? compute_copy_ : master_.values;
    upload_ = context_->link->to_device(shard_.defined() ? shard_ : part_of(whole_, context_->updated()), newest);
  }
}

void UnitValues::wait_gather() {
  begin_gather();
  if (gather_) {
    const auto timed = context_->clock->enter(StepPart::kCommunication);
    std::exchange(gather_, nullptr)->wait();
  }
  uploaded_ = std::exchange(upload_, {});
  order_after_upload(uploaded_);
  state_ = State::kWhole;
}

void UnitValues::release() {
  if (!context_->placement.parameters.is_split() || state_ == State::kSplit) return;
  wait_gather();
  resize_storage(whole_, 0);
  state_ = State::kSplit;
}

void UnitValues::release_until_backward() {
  if (context_->groups.second_copy != nullptr && !second_copy_.defined()) {
    wait_gather();
    second_copy_ = part_of(whole_, context_->own_part_of_second_copy()).clone();
  }
  release();
}

void UnitValues::adopt_update(std::shared_future<void> pending) {
  const Placement& row = context_->placement;
  pending_ = std::move(pending);
  if (row.delayed_update) {
    has_unpublished_ = true;
    return;
  }
  second_copy_.reset();
  if (updates_go_up()) {
    device_is_behind_ = true;
    if (!row.parameters.is_split()) state_ = State::kStale;
  } else if (row.parameters.is_on_host() && !row.optimizer.is_on_host()) {
    download_ = context_->link->to_host(shard_, master_.values.to(context_->types.compute));
  } else if (row.optimizer.is_split() && !row.parameters.is_split() && context_->groups.shard != nullptr) {
    // Every rank keeps the parameters whole and has updated a part: gather the parts now; the next use waits.
    state_ = State::kGathering;
    gather_ = context_->groups.shard->all_gather(whole_, part_of(whole_, context_->own_shard()), context_->name);
  }
}

Transfer UnitValues::publish_update() {
  wait_for_update();
  if (!std::exchange(has_unpublished_, false)) return {};
  // Everything gathered, on its way or kept for backward is now stale.
  release();
  if (is_on_its_way()) wait_gather();
  second_copy_.reset();
  if (context_->placement.parameters.is_on_host()) {
    std::exchange(uploaded_, {}).wait();
    // Frozen parameters and gaps, which the optimizer does not write, are the same in both.
    if (compute_copy_.defined()) {
      std::swap(shard_, compute_copy_);
    } else {
      shard_.copy_(master_.values);
    }
    return {};
  }
  device_is_behind_ = true;
  if (shard_.defined()) {
    upload();
    return upload_;
  }
  state_ = State::kStale;
  begin_gather();
  return upload_;
}

void UnitValues::set_master(const at::Tensor& values) {
  if (master_.remainder.defined()) {
    const at::Tensor there = values.to(master_.values.device());
    master_.values.copy_(there);  // the compute copy
    master_.remainder.copy_(kernels::remainder_of(there, master_.values));
    return;
  }
  master_.values.copy_(values);
  if (compute_copy_.defined()) compute_copy_.copy_(master_.values);
}

void UnitValues::replace(const at::Tensor& values) {
  second_copy_.reset();
  set_master(part_of(values, context_->updated()));
  if (shard_.defined()) shard_.copy_(part_of(values, context_->own_shard()));
  if (state_ != State::kSplit) {
    whole_.copy_(values);
    state_ = State::kWhole;
  }
  device_is_behind_ = false;
  upload_ = {};
}

void UnitValues::replace_part(const at::Tensor& values) {
  second_copy_.reset();
  set_master(values);
  device_is_behind_ = false;
  upload_ = {};
  if (shard_.defined()) {
    shard_.copy_(values);
    release();
    return;
  }
  part_of(whole_, context_->updated()).copy_(values);
  state_ = State::kWhole;
  if (!context_->placement.optimizer.is_split() || context_->groups.shard == nullptr) return;
  state_ = State::kGathering;
  gather_ = context_->groups.shard->all_gather(whole_, part_of(whole_, context_->own_shard()), context_->name);
}

void UnitValues::wait_for_update() {
  if (!download_.is_done()) {
    const auto timed = context_->clock->enter(StepPart::kTransfer);
    download_.wait();
  }
  download_ = {};
  if (!pending_.valid()) return;
  if (pending_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return std::exchange(pending_, {}).get();
  const auto timed = context_->clock->enter(StepPart::kUpdate);
  std::exchange(pending_, {}).get();
}

// What is there already is not timed: with offload that would be every unit, several times per step.
void UnitValues::order_after_upload(const Transfer& upload) {
  if (upload.is_done()) return;
  const auto timed = context_->clock->enter(StepPart::kTransfer);
  upload.order_after();
}

}  // namespace tessera
