#include "parallel/sharded_optimizer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/flat_buffers.h"
#include "kernels/optimizers/optimizer_slice.h"

namespace tessera {
namespace {

// A range of the unit, in a tensor that covers its updated() part.
at::Tensor part(const FlatUnit& unit, const at::Tensor& tensor, FlatRange range) {
  return tensor.narrow(0, range.begin - unit.updated().begin, range.numel());
}

}  // namespace

at::ScalarType scalar_type_of(NumberType type) {
  return type == NumberType::kFloat32 ? at::kFloat : type == NumberType::kFloat16 ? at::kHalf : at::kBFloat16;
}

int num_moments_of(const OptimizerChoice& choice) {
  std::size_t bytes = 0;
  for (const OptimizerState& state : choice.optimizer->states(choice.numbers)) {
    bytes += c10::elementSize(scalar_type_of(state.type));
  }
  return static_cast<int>((bytes + sizeof(float) - 1) / sizeof(float));
}

ShardedOptimizer::ShardedOptimizer(Engine& engine, const OptimizerChoice& choice, HostUpdates host_updates)
    : engine_(engine),
      choice_(choice),
      states_(choice.optimizer->states(choice.numbers)),
      square_sums_(engine.units().size()) {
  choice_.optimizer->check(choice_.numbers);
  for (const FlatUnit& unit : engine_.units()) {
    std::vector<at::Tensor>& states = states_of_unit_.emplace_back();
    for (const OptimizerState& state : states_) {
      const at::Tensor& like = unit.split_master().values;
      states.push_back(at::zeros_like(like, like.options().dtype(scalar_type_of(state.type))));
    }
  }
  const bool wanted =
      host_updates == HostUpdates::kInBackground || (host_updates == HostUpdates::kAuto && !engine_.device().is_cpu());
  if (wanted && engine_.placement().optimizer.is_on_host()) worker_ = std::make_unique<UpdateWorker>();
}

ShardedOptimizer::~ShardedOptimizer() {
  engine_.listen_to_gradients({});
}

void ShardedOptimizer::update_during_backward(const UpdateArguments& arguments) {
  if (engine_.placement().delayed_update) {
    throw UsageError("updates during backward cannot be combined with delayed updates, which run during the next step");
  }
  if (arguments.max_norm > 0) {
    throw UsageError(
        "updates during backward cannot be combined with clipping, which needs the norm of all gradients before the "
        "first update");
  }
  if (std::exchange(is_updating_, true)) {
    throw Error("update_during_backward() was called twice: call update() in between");
  }
  ++num_updates_;
  engine_.listen_to_gradients([this, arguments](std::size_t index) {
    at::NoGradGuard no_gradients;
    square_sums_[index] = engine_.units()[index].square_sums();
    begin_update(index, arguments.learning_rate, 1 / arguments.divisor);
  });
}

UpdateResult ShardedOptimizer::update(const UpdateArguments& arguments) {
  at::NoGradGuard no_gradients;
  const auto timed = engine_.clock().enter(StepPart::kUpdate);
  engine_.wait_for_gradients();
  const bool was_updated = std::exchange(is_updating_, false);
  engine_.listen_to_gradients({});
  const auto has_come = [](const at::Tensor& sums) { return sums.defined(); };
  if (was_updated && !std::all_of(square_sums_.begin(), square_sums_.end(), has_come)) {
    throw Error("update_during_backward() was not followed by the last micro-step's backward(): there is no gradient");
  }
  for (std::size_t i = 0; i < square_sums_.size() && !was_updated; ++i) {
    engine_.guarded("update", i, [&] { square_sums_[i] = engine_.units()[i].square_sums(); });
  }
  UpdateResult result{gradient_norm() / arguments.divisor, false, {}};
  result.skipped = !std::isfinite(result.gradient_norm);
  if (result.skipped) result.faults = find_faults();
  square_sums_.assign(square_sums_.size(), at::Tensor());
  if (was_updated) {
    if (!result.skipped) return result;
    throw Error(
        describe(result.faults) +
        "; an update during backward had already used it, so the model is corrupt: resume from a checkpoint, and let "
        "updates wait for the norm");
  }
  if (!result.skipped) {
    ++num_updates_;
    double scale = 1 / arguments.divisor;
    // As in torch's clip_grad_norm_.
    if (arguments.max_norm > 0) scale *= std::min(1.0, arguments.max_norm / (result.gradient_norm + 1e-6));
    update_all(arguments.learning_rate, scale);
  } else {
    for (std::size_t i = 0; i < engine_.units().size(); ++i) {
      engine_.guarded("update", i, [&unit = engine_.units()[i]] {
        unit.forget_gradient();
        unit.publish_update().wait();
      });
    }
  }
  return result;
}

void ShardedOptimizer::update_all(double learning_rate, double gradient_scale) {
  for (std::size_t i = 0; i < engine_.units().size(); ++i) {
    begin_update(engine_.schedule().unit_of_update(i), learning_rate, gradient_scale);
  }
}

void ShardedOptimizer::begin_update(std::size_t index, double learning_rate, double gradient_scale) {
  FlatUnit& unit = engine_.units()[index];
  if (index < reads_.size()) std::exchange(reads_[index], {}).order_after();
  const Transfer before = engine_.guarded("update", index, [&] { return unit.publish_update(); });
  const UpdateNumbers update{learning_rate, gradient_scale, num_updates_};
  const auto work = [this, &unit, index, update, before, rank = engine_.rank()] {
    in_unit(rank, "update", unit.name(), [&] {
      at::NoGradGuard no_gradients;
      before.wait();
      unit.wait_gradient_on_host();
      update_unit(index, update);
    });
  };
  const auto is_ready = [&unit, before] { return before.is_done() && unit.gradient_is_on_host(); };
  engine_.guarded("update", index, [&] {
    if (worker_ && unit.is_updated_on_host()) return unit.adopt_update(worker_->begin(work, is_ready));
    work();
    unit.adopt_update();
  });
}

// Every rank adds the sums of all blocks in the same order: unit by unit, block by block. One small collective per
// step.
double ShardedOptimizer::gradient_norm() const {
  // The hash of the gather order travels with the sums: if ranks gather units of one size in different orders, the
  // values are mixed up without any other sign. Not a copy that blocks: the sum would be queued only after backward.
  const auto order = at::tensor({static_cast<std::int64_t>(engine_.gather_order())}, at::kLong).view(at::kDouble);
  std::vector<at::Tensor> parts = square_sums_;
  parts.push_back(order.to(square_sums_.front().device(), /*non_blocking=*/true));
  const at::Tensor own = at::cat(parts);
  at::Tensor all = own.unsqueeze(0);  // [ranks that hold parts, blocks of a part]
  Group* group = engine_.groups().shard;
  if (group != nullptr && engine_.units().front().is_part()) {
    all = at::empty({group->size(), own.numel()}, own.options());
    const auto timed = engine_.clock().enter(StepPart::kCommunication);
    group->all_gather(all.view(at::kLong), own.view(at::kLong), "gradient norm")->wait();
  }
  if (all.is_cuda()) return norm_on_device(all);
  const at::Tensor& host = all;
  check_order(host.select(1, -1).contiguous().view(at::kLong));
  const auto sums = host.accessor<double, 2>();
  double total = 0;
  std::int64_t begin = 0;
  for (const at::Tensor& of_unit : square_sums_) {
    const std::int64_t end = begin + of_unit.numel();
    for (std::int64_t part = 0; part < host.size(0); ++part) {
      // Blocks of padding are zero and change nothing.
      for (std::int64_t block = begin; block < end; ++block) total += sums[part][block];
    }
    begin = end;
  }
  return std::sqrt(total);
}

// The total is read, not the sums: there is one for each 1024 numbers of the model.
double ShardedOptimizer::norm_on_device(const at::Tensor& sums) const {
  if (!unit_begins_.defined()) {
    std::vector<std::int64_t> begins{0};
    for (const at::Tensor& of_unit : square_sums_) begins.push_back(begins.back() + of_unit.numel());
    unit_begins_ = at::tensor(begins, at::kLong).to(sums.device());
  }
  const at::Tensor total = kernels::add_units_cuda(sums, unit_begins_).cpu();
  check_order(total.narrow(0, 1, sums.size(0)).contiguous().view(at::kLong));
  return std::sqrt(total.const_data_ptr<double>()[0]);
}

void ShardedOptimizer::check_order(const at::Tensor& order_of_rank) const {
  for (std::int64_t i = 1; i < order_of_rank.numel(); ++i) {
    if (order_of_rank[i].item<std::int64_t>() == order_of_rank[0].item<std::int64_t>()) continue;
    const std::vector<int>& ranks = engine_.groups().shard->ranks();
    throw Error(fmt::format(
        "rank {} and rank {} have gathered units in different orders: every rank must run the same units in "
        "the same order",
        ranks[0], ranks[static_cast<std::size_t>(i)]));
  }
}

std::vector<GradientFault> ShardedOptimizer::find_faults() const {
  std::vector<std::string> names;
  std::vector<bool> is_finite;
  for (std::size_t i = 0; i < square_sums_.size(); ++i) {
    const FlatUnit& unit = engine_.units()[i];
    names.push_back(unit.name());
    is_finite.push_back(engine_.all() != nullptr ? unit.own_gradient_is_finite()
                                                 : std::isfinite(square_sums_[i].sum().item<double>()));
  }
  return find_gradient_faults(engine_.all(), engine_.device(), names, is_finite);
}

// Parameters without weight decay are adjacent, so at most two calls are needed.
void ShardedOptimizer::update_unit(std::size_t index, const UpdateNumbers& update) const {
  const FlatUnit& unit = engine_.units()[index];
  for (const ParameterGroup group : {ParameterGroup::kDecaying, ParameterGroup::kPlain}) {
    const FlatRange range = intersect(unit.layout().range_of(group), unit.updated());
    if (range.empty()) continue;
    OptimizerNumbers numbers = choice_.numbers;
    if (group == ParameterGroup::kPlain) numbers.weight_decay = 0;
    const kernels::SplitFloats& master = unit.split_master();
    OptimizerSlice slice{{}, part(unit, unit.gradient(), range)};
    if (master.remainder.defined()) {
      slice.remainder = part(unit, master.remainder, range);
    } else {
      slice.params = part(unit, master.values, range);
    }
    for (const at::Tensor& state : states_of_unit_[index]) slice.states.push_back(part(unit, state, range));
    if (unit.compute_copy().defined()) slice.copy = part(unit, unit.compute_copy(), range);
    choice_.optimizer->update(slice, numbers, update);
  }
}

}  // namespace tessera
