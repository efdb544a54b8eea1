#include "parallel/flat_unit.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <utility>

namespace tessera {
namespace {

std::vector<FlatLayout::Entry> entries_of(const std::vector<UnitParameter>& parameters) {
  std::vector<FlatLayout::Entry> entries;
  for (const UnitParameter& p : parameters) entries.push_back({p.name, p.parameter.sizes().vec(), p.group});
  return entries;
}

// The storage object stays; so do views of it and what autograd has saved.
void resize_storage(const at::Tensor& tensor, std::int64_t bytes) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(static_cast<std::size_t>(bytes)));
  storage->set_nbytes(static_cast<std::size_t>(bytes));
}

at::Tensor view_of(const at::Tensor& flat, const FlatSlot& slot) {
  return flat.narrow(0, slot.offset, slot.numel).view(slot.shape);
}

}  // namespace

FlatUnit::FlatUnit(std::string name, const std::vector<UnitParameter>& parameters, const Placement& placement,
                   const UnitGroups& groups, const UnitTypes& types, bool sync_from_first)
    : name_(std::move(name)),
      layout_(entries_of(parameters), groups.num_shards()),
      placement_(placement.on(groups.num_shards())),
      groups_(groups),
      types_(types),
      own_(layout_.shard(groups.shard_rank())) {
  for (std::size_t entry : layout_.entry_of_slot()) parameters_.push_back(parameters[entry].parameter);
  has_gradient_.resize(parameters_.size());
  at::NoGradGuard no_gradients;
  fill(sync_from_first);
  place_master();
  bind_parameters();
  release();
}

// whole_ in float32: the values that every rank begins with.
void FlatUnit::fill(bool sync_from_first) {
  const auto device = parameters_.empty() ? at::Device(at::kCPU) : parameters_.front().device();
  whole_ = at::zeros({layout_.padded_numel()}, at::dtype(at::kFloat).device(device));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    view_of(whole_, layout_.slots()[i]).copy_(parameters_[i].detach());
  }
  if (!sync_from_first || whole_.numel() == 0) return;
  if (groups_.replicas != nullptr) groups_.replicas->broadcast(whole_, 0, name_)->wait();
  if (groups_.shard != nullptr) groups_.shard->broadcast(whole_, 0, name_)->wait();
}

void FlatUnit::place_master() {
  const bool same_type = types_.compute == at::kFloat;
  const at::Tensor values = whole_;
  if (!same_type) whole_ = values.to(types_.compute);
  if (placement_.parameters_split) {
    shard_ = own_part(whole_).clone();
    master_ = same_type ? shard_ : own_part(values).clone();
    if (!same_type) compute_copy_ = shard_;
  } else {
    const at::Tensor part = placement_.optimizer_split ? own_part(whole_) : whole_;
    master_ = same_type ? part : (placement_.optimizer_split ? own_part(values).clone() : values);
    if (!same_type) compute_copy_ = part;
  }
}

// By variable_data(): refilling the buffer is then no modification that autograd's version checks see.
void FlatUnit::bind_parameters() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].set_data(view_of(whole_.variable_data(), layout_.slots()[i]));
  }
}

void FlatUnit::begin_gather() {
  if (state_ != State::kSplit) return;
  resize_storage(whole_, layout_.padded_numel() * static_cast<std::int64_t>(whole_.element_size()));
  state_ = State::kGathering;
  if (groups_.shard != nullptr) {
    gather_ = groups_.shard->all_gather(whole_, shard_, name_);
  } else {
    whole_.copy_(shard_, /*non_blocking=*/true);
  }
}

void FlatUnit::wait_gather() {
  begin_gather();
  if (gather_) std::exchange(gather_, nullptr)->wait();
  state_ = State::kWhole;
}

void FlatUnit::release() {
  if (!placement_.parameters_split || state_ == State::kSplit) return;
  wait_gather();
  resize_storage(whole_, 0);
  state_ = State::kSplit;
}

// In the reduce type, or in float32 where micro-steps are added up before the reduction.
void FlatUnit::make_flat_gradient() {
  const bool adds_here = types_.accumulates && !placement_.gradients_split;
  const auto type = adds_here ? at::kFloat : types_.reduce;
  flat_gradient_ = at::empty({layout_.padded_numel()}, whole_.options().dtype(type));
  zero_gaps(flat_gradient_);
}

void FlatUnit::zero_gaps(const at::Tensor& flat) const {
  std::int64_t end = 0;
  for (const FlatSlot& slot : layout_.slots()) {
    if (slot.offset > end) flat.narrow(0, end, slot.offset - end).zero_();
    end = slot.offset + slot.numel;
  }
  flat.narrow(0, end, layout_.padded_numel() - end).zero_();
}

void FlatUnit::accept_gradient(std::size_t slot) {
  at::NoGradGuard no_gradients;
  at::Tensor& gradient = parameters_[slot].mutable_grad();
  if (!gradient.defined()) return;
  if (!flat_gradient_.defined()) make_flat_gradient();
  const at::Tensor target = view_of(flat_gradient_, layout_.slots()[slot]);
  has_gradient_[slot] ? target.add_(gradient) : target.copy_(gradient, /*non_blocking=*/true);
  has_gradient_[slot] = true;
  gradient.reset();
}

void FlatUnit::begin_reduce(bool last_micro_step) {
  if (!placement_.gradients_split && !last_micro_step) return;
  at::NoGradGuard no_gradients;
  wait_reduce();  // of the micro-step before
  if (!flat_gradient_.defined()) make_flat_gradient();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient_[i]) view_of(flat_gradient_, layout_.slots()[i]).zero_();
  }
  has_gradient_.assign(has_gradient_.size(), false);
  incoming_ = flat_gradient_.to(types_.reduce);
  flat_gradient_.reset();
  across_nodes_is_due_ = groups_.replicas != nullptr;
  if (groups_.shard == nullptr) return;
  const at::Tensor whole = incoming_, own = own_part(whole);
  if (placement_.optimizer_split) {
    incoming_ = at::empty({own_.numel()}, whole.options());
    reduce_ = groups_.shard->reduce_scatter(incoming_, whole, ReduceOp::SUM, name_);
  } else {
    // The same sums as everywhere, each at its own rank, then handed round. A group keeps the order of its collectives.
    groups_.shard->reduce_scatter(own, whole, ReduceOp::SUM, name_);
    reduce_ = groups_.shard->all_gather(whole, own, name_);
  }
}

void FlatUnit::continue_reduce() {
  if (!std::exchange(across_nodes_is_due_, false)) return;
  if (reduce_) reduce_->wait();
  reduce_ = groups_.replicas->all_reduce(incoming_, ReduceOp::SUM, name_);
}

void FlatUnit::wait_reduce() {
  continue_reduce();
  if (reduce_) std::exchange(reduce_, nullptr)->wait();
  if (incoming_.defined()) store_shard_gradient();
}

void FlatUnit::store_shard_gradient() {
  const at::Tensor arrived = std::exchange(incoming_, at::Tensor());
  if (gradient_.defined()) {
    gradient_.add_(arrived);
  } else {
    gradient_ = types_.accumulates ? arrived.to(at::kFloat) : arrived;
  }
}

void FlatUnit::take_update() {
  forget_gradient();
  // Where every rank keeps the parameters whole and updates a part, the parts go round now; the next use waits.
  if (placement_.optimizer_split && !placement_.parameters_split && groups_.shard != nullptr) {
    state_ = State::kGathering;
    gather_ = groups_.shard->all_gather(whole_, own_part(whole_), name_);
  }
}

void FlatUnit::forget_gradient() {
  gradient_.reset();
}

}  // namespace tessera
