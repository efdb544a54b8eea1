#include "parallel/unit_gradient.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <utility>

#include "comm/host_backend.h"
#include "kernels/flat_parts.h"
#include "kernels/norm.h"

namespace tessera {

UnitGradient::UnitGradient(std::shared_ptr<const UnitContext> context, std::vector<at::Tensor> parameters)
    : context_(std::move(context)),
      parameters_(std::move(parameters)),
      is_waiting_(parameters_.size()),
      has_gradient_(parameters_.size()),
      lent_(parameters_.size()) {
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();  // left from before
  if (!context_->placement.optimizer.is_on_host()) return;
  on_host_ = context_->link->host_empty(context_->updated().numel(), context_->types.of_gradient());
}

// A gradient may be computed in its place, if it is the first and comes in the type that is collected. A small one
// alone does not allocate the flat buffer: accept() says why.
at::Tensor UnitGradient::room(std::size_t slot) {
  const FlatSlot& own = context_->layout.slots()[slot];
  if (has_gradient_[slot] || is_waiting_[slot] || lent_[slot] != nullptr) return {};
  if (context_->types.of_flat_gradient(context_->placement) != parameters_[slot].scalar_type()) return {};
  if (!flat_.defined() && context_->layout.is_small_part(own.numel)) return {};
  if (!flat_.defined()) make_flat();
  const at::AutoDispatchBelowADInplaceOrView below;  // no gradient of a gradient: less host time
  at::Tensor room = view_of(flat_, own);
  lent_[slot] = room.const_data_ptr();
  return room;
}

void UnitGradient::make_flat() {
  flat_ = at::empty({context_->layout.padded_numel()},
                    context_->on_device(context_->types.of_flat_gradient(context_->placement)));
  targets_.assign(parameters_.size(), at::Tensor());
  lent_.assign(parameters_.size(), nullptr);
  zero_gaps(flat_);
}

void UnitGradient::zero_gaps(const at::Tensor& flat) const {
  std::int64_t end = 0;
  for (const FlatSlot& slot : context_->layout.slots()) {
    if (slot.offset > end) flat.narrow(0, end, slot.offset - end).zero_();
    end = slot.offset + slot.numel;
  }
  flat.narrow(0, end, flat.numel() - end).zero_();
}

// Whether it was computed in the place that was lent for it. Whether or not, the place is lent no longer.
bool UnitGradient::arrives_in_place(std::size_t slot, const at::Tensor& gradient) {
  const void* const lent = std::exchange(lent_[slot], nullptr);
  if (lent == nullptr || gradient.const_data_ptr() != lent) return false;
  has_gradient_[slot] = true;
  return true;
}

void UnitGradient::accept(const std::vector<kernels::GivenGradient>& gradients) {
  at::NoGradGuard no_gradients;
  std::vector<kernels::FlatPart> parts;
  for (const auto& [slot, gradient] : gradients) {
    if (arrives_in_place(slot, gradient)) continue;
    parts.push_back({gradient, context_->layout.slots()[slot].offset, has_gradient_[slot]});
    has_gradient_[slot] = true;
  }
  if (parts.empty()) return;
  if (!flat_.defined()) make_flat();
  kernels::put_parts(flat_, parts);
}

// Small gradients wait for each other: moved one by one, each would take as long as a large one. One small gradient
// does not allocate the flat buffer either: the root's last norm comes first in backward and its embedding last, and
// half a gigabyte would lie idle in between. Many together do: else a unit of only small ones would be in memory twice.
void UnitGradient::accept(std::size_t slot) {
  at::NoGradGuard no_gradients;
  at::Tensor& held = parameters_[slot].mutable_grad();
  if (arrives_in_place(slot, held)) return held.reset();
  const FlatLayout& layout = context_->layout;
  const std::int64_t numel = layout.slots()[slot].numel;
  const bool is_small = layout.is_small_part(numel);
  if (is_small && !is_waiting_[slot]) {
    is_waiting_[slot] = true;
    waiting_.push_back(slot);
    waiting_numel_ += numel;
  }
  // If one comes twice while it waits, autograd adds it up.
  if (is_small && layout.is_small_part(waiting_numel_)) return;
  if (!flat_.defined()) make_flat();
  is_small ? move_waiting() : move_into_flat(slot);
}

void UnitGradient::move_into_flat(std::size_t slot) {
  at::Tensor& gradient = parameters_[slot].mutable_grad();
  if (!gradient.defined()) return;
  at::Tensor& target = targets_[slot];
  if (!target.defined()) target = view_of(flat_, context_->layout.slots()[slot]);
  if (has_gradient_[slot]) {
    target.add_(gradient);
  } else {
    target.copy_(gradient, /*non_blocking=*/true);
  }
  has_gradient_[slot] = true;
  gradient.reset();
}

void UnitGradient::move_waiting() {
  std::vector<kernels::FlatPart> parts;
  for (const std::size_t slot : waiting_) {
    const at::Tensor& gradient = parameters_[slot].grad();
    if (!gradient.defined()) continue;
    parts.push_back({gradient, context_->layout.slots()[slot].offset, has_gradient_[slot]});
    has_gradient_[slot] = true;
  }
  kernels::put_parts(flat_, parts);
  for (const std::size_t slot : std::exchange(waiting_, {})) {
    parameters_[slot].mutable_grad().reset();
    is_waiting_[slot] = false;
  }
  waiting_numel_ = 0;
}

void UnitGradient::begin_reduce(bool last_micro_step) {
  at::NoGradGuard no_gradients;
  if (!flat_.defined()) make_flat();
  move_waiting();
  if (!context_->placement.reduces_in(last_micro_step)) return;
  wait_reduce();  // of the previous micro-step
  if (std::exchange(is_first_, last_micro_step)) {
    own_sum_.reset();
    own_sum_is_finite_ = true;
  }
  is_last_ = last_micro_step;
  is_reduced_ = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_gradient_[i]) view_of(flat_, context_->layout.slots()[i]).zero_();
  }
  has_gradient_.assign(has_gradient_.size(), false);
  note_own();
  incoming_ = flat_.to(context_->types.reduce);
  flat_.reset();
  targets_.clear();
  const UnitGroups& groups = context_->groups;
  across_nodes_is_due_ = groups.replicas != nullptr;
  if (groups.shard == nullptr) return;
  const at::Tensor whole = incoming_, own = part_of(whole, context_->own_shard());
  if (context_->placement.optimizer.is_split()) {
    incoming_ = at::empty({own.numel()}, whole.options());
    reduce_ = groups.shard->reduce_scatter(incoming_, whole, ReduceOp::SUM, context_->name);
  } else {
    // The same sums as in every row, each computed on its own rank, then gathered. A group keeps the order of its
    // collectives; one that goes through host memory puts the sums onto the device only when it is waited for.
    const WorkHandle sums = groups.shard->reduce_scatter(own, whole, ReduceOp::SUM, context_->name);
    if (!whole.is_cpu() && c10::dynamic_intrusive_pointer_cast<HostWork>(sums)) {
      const auto timed = context_->clock->enter(StepPart::kCommunication);
      sums->wait();
    }
    reduce_ = groups.shard->all_gather(whole, own, context_->name);
  }
}

// Reads the gradient once, while the reduction moves the same bytes several times. One rank alone needs no record.
void UnitGradient::note_own() {
  if (context_->groups.is_alone()) return;
  // Not flat_.sum(): on a CPU that makes a float32 copy of a half type.
  const at::Tensor sum = kernels::block_square_sums(flat_).sum();
  if (sum.is_cpu()) {
    own_sum_is_finite_ = own_sum_is_finite_ && std::isfinite(sum.item<double>());
  } else {
    own_sum_ = own_sum_.defined() ? own_sum_ + sum : sum;  // read only when a step is skipped: no wait for the GPU
  }
}

bool UnitGradient::own_is_finite() const {
  return own_sum_is_finite_ && (!own_sum_.defined() || std::isfinite(own_sum_.item<double>()));
}

void UnitGradient::continue_reduce() {
  if (!std::exchange(across_nodes_is_due_, false)) return;
  if (reduce_) {
    const auto timed = context_->clock->enter(StepPart::kCommunication);
    reduce_->wait();
  }
  reduce_ = context_->groups.replicas->all_reduce(incoming_, ReduceOp::SUM, context_->name);
}

void UnitGradient::wait_reduce() {
  continue_reduce();
  if (reduce_) {
    const auto timed = context_->clock->enter(StepPart::kCommunication);
    std::exchange(reduce_, nullptr)->wait();
  }
  if (incoming_.defined()) store();
}

void UnitGradient::store() {
  at::NoGradGuard no_gradients;
  const at::Tensor arrived = std::exchange(incoming_, at::Tensor());
  if (reduced_.defined()) {
    reduced_.add_(arrived);
  } else {
    reduced_ = context_->types.accumulates ? arrived.to(at::kFloat) : arrived;
  }
  if (is_last_ && context_->placement.optimizer.is_on_host()) send_to_host();
  is_reduced_ = is_last_;
}

void UnitGradient::send_to_host() {
  square_sums_ = kernels::block_square_sums(reduced_);
  download_ = context_->link->to_host(on_host_, reduced_);
  reduced_.reset();
}

at::Tensor UnitGradient::square_sums() const {
  return square_sums_.defined() ? square_sums_ : kernels::block_square_sums(reduced_);
}

void UnitGradient::forget() {
  reduced_.reset();
  square_sums_.reset();
  is_reduced_ = false;
}

}  // namespace tessera
