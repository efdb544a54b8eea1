#include "parallel/sharded_optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace tessera {
namespace {

at::Tensor part(const at::Tensor& tensor, FlatRange range, std::int64_t begin) {
  return tensor.narrow(0, range.begin - begin, range.numel());
}

// [blocks of the range] float64: of each block, its squares' sum.
at::Tensor block_sums(const at::Tensor& gradient) {
  return gradient.view({-1, kBlockNumel}).to(at::kDouble).square().sum(1);
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Engine& engine, const OptimizerOptions& options)
    : engine_(engine), options_(options) {
  for (const FlatUnit& unit : engine_.units()) {
    moments_.push_back({at::zeros_like(unit.master()), at::zeros_like(unit.master())});
  }
}

UpdateResult ShardedOptimizer::update(const UpdateArguments& arguments) {
  at::NoGradGuard no_gradients;
  engine_.wait_for_gradients();
  UpdateResult result{gradient_norm() / arguments.divisor, false};
  result.skipped = !std::isfinite(result.gradient_norm);
  if (!result.skipped) {
    ++num_updates_;
    double factor = 1 / arguments.divisor;
    // As torch's clip_grad_norm_ does it.
    if (arguments.max_norm > 0) factor *= std::min(1.0, arguments.max_norm / (result.gradient_norm + 1e-6));
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      update_unit(engine_.units()[i], moments_[i], arguments, factor);
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
  for (FlatUnit& unit : engine_.units()) sums_of_unit.push_back(block_sums(unit.gradient()));
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

void ShardedOptimizer::update_unit(FlatUnit& unit, const Moments& moments, const UpdateArguments& arguments,
                                   double factor) const {
  for (const ParameterGroup group : {ParameterGroup::kDecaying, ParameterGroup::kPlain}) {
    const FlatRange own = unit.range(), range = intersect(unit.layout().range_of(group), own);
    if (range.empty()) continue;
    at::Tensor master = part(unit.master(), range, own.begin);
    at::Tensor gradient = part(unit.gradient(), range, own.begin).to(at::kFloat).mul(factor);
    at::Tensor first = part(moments.first, range, own.begin), second = part(moments.second, range, own.begin);
    at::Tensor step = at::tensor(static_cast<float>(num_updates_));
    at::_fused_adamw_({master}, {gradient}, {first}, {second}, {}, {step}, arguments.learning_rate, options_.beta1,
                      options_.beta2, group == ParameterGroup::kDecaying ? options_.weight_decay : 0.0, options_.eps,
                      false, false);
    if (unit.compute_copy().defined()) part(unit.compute_copy(), range, own.begin).copy_(master);
  }
}

}  // namespace tessera
