#include "parallel/sharded_optimizer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/norm.h"

namespace tessera {
namespace {

bool has_first_moment(const OptimizerOptions& options) {
  const auto* sgd = std::get_if<kernels::Sgd>(&options);
  return sgd == nullptr || sgd->momentum != 0;
}

// A part of a tensor that covers the unit's own range.
at::Tensor part(const FlatUnit& unit, const at::Tensor& tensor, FlatRange range) {
  return tensor.narrow(0, range.begin - unit.range().begin, range.numel());
}
std::optional<at::Tensor> part_if_any(const FlatUnit& unit, const at::Tensor& tensor, FlatRange range) {
  return tensor.defined() ? std::optional(part(unit, tensor, range)) : std::nullopt;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Engine& engine, const OptimizerOptions& options)
    : engine_(engine), options_(options) {
  for (const FlatUnit& unit : engine_.units()) {
    Moments& moments = moments_.emplace_back();
    if (has_first_moment(options_)) moments.first = at::zeros_like(unit.master());
    if (std::holds_alternative<kernels::AdamW>(options_)) moments.second = at::zeros_like(unit.master());
  }
}

UpdateResult ShardedOptimizer::update(const UpdateArguments& arguments) {
  at::NoGradGuard no_gradients;
  engine_.wait_for_gradients();
  UpdateResult result{gradient_norm() / arguments.divisor, false};
  result.skipped = !std::isfinite(result.gradient_norm);
  if (!result.skipped) {
    ++num_updates_;
    double scale = 1 / arguments.divisor;
    // As torch's clip_grad_norm_ does it.
    if (arguments.max_norm > 0) scale *= std::min(1.0, arguments.max_norm / (result.gradient_norm + 1e-6));
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      update_unit(engine_.units()[i], moments_[i], arguments.learning_rate, scale);
      engine_.units()[i].take_update();
    }
  } else {
    for (FlatUnit& unit : engine_.units()) unit.forget_gradient();
  }
  return result;
}

// Every rank adds the sums of all blocks in the same order: unit by unit, block by block. One small collective a step.
double ShardedOptimizer::gradient_norm() const {
  std::vector<at::Tensor> sums_of_unit;
  for (FlatUnit& unit : engine_.units()) sums_of_unit.push_back(kernels::block_square_sums(unit.gradient()));
  const at::Tensor own = at::cat(sums_of_unit);
  at::Tensor all = own.unsqueeze(0);  // [ranks that hold parts, blocks of a part]
  if (engine_.units().front().is_part()) {
    all = at::empty({engine_.groups().num_shards(), own.numel()}, own.options());
    engine_.groups().shard->all_gather(all.view(at::kLong), own.view(at::kLong), "gradient norm")->wait();
  }
  const at::Tensor host = all.cpu();
  const auto sums = host.accessor<double, 2>();
  double total = 0;
  std::int64_t begin = 0;
  for (const at::Tensor& of_unit : sums_of_unit) {
    const std::int64_t end = begin + of_unit.numel();
    for (std::int64_t part = 0; part < host.size(0); ++part) {
      // The blocks of padding are zero and change nothing.
      for (std::int64_t block = begin; block < end; ++block) total += sums[part][block];
    }
    begin = end;
  }
  return std::sqrt(total);
}

void ShardedOptimizer::update_unit(const FlatUnit& unit, const Moments& moments, double learning_rate,
                                   double gradient_scale) const {
  for (const ParameterGroup group : {ParameterGroup::kDecaying, ParameterGroup::kPlain}) {
    const FlatRange range = intersect(unit.layout().range_of(group), unit.range());
    if (range.empty()) continue;
    std::visit(
        [&](auto how) {
          how.learning_rate = learning_rate;
          how.gradient_scale = gradient_scale;
          if (group == ParameterGroup::kPlain) how.weight_decay = 0;
          update_range(unit, moments, range, how);
        },
        options_);
  }
}

void ShardedOptimizer::update_range(const FlatUnit& unit, const Moments& moments, FlatRange range,
                                    kernels::AdamW how) const {
  kernels::adamw_step(
      {part(unit, unit.master(), range), part(unit, unit.gradient(), range), part(unit, moments.first, range),
       part(unit, moments.second, range), part_if_any(unit, unit.compute_copy(), range)},
      how, num_updates_);
}

void ShardedOptimizer::update_range(const FlatUnit& unit, const Moments& moments, FlatRange range,
                                    kernels::Sgd how) const {
  kernels::sgd_step({part(unit, unit.master(), range), part(unit, unit.gradient(), range),
                     part_if_any(unit, moments.first, range), part_if_any(unit, unit.compute_copy(), range)},
                    how, num_updates_);
}

}  // namespace tessera
