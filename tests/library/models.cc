#include "library/models.h"

#include <ATen/ATen.h>

namespace tessera {

PlainNet::PlainNet() {
  first = register_module("first", torch::nn::Linear(kNumInputs, kWidth));
  norm = register_module("norm", torch::nn::BatchNorm1d(kWidth));
  second = register_module("second", torch::nn::Linear(kWidth, kWidth));
  tied = register_module("tied", second);
  fill(*this);
}

at::Tensor PlainNet::forward(const at::Tensor& x) {
  at::Tensor h = norm(first(x)).tanh();
  h = second(h).tanh();
  return tied(h).slice(1, 0, kNumClasses);
}

BlockImpl::BlockImpl() {
  inner = register_module("inner", torch::nn::Linear(kWidth, kWidth));
}

at::Tensor BlockImpl::forward(const at::Tensor& x) {
  return x + inner(x).tanh();
}

BlockNet::BlockNet() {
  stem = register_module("stem", torch::nn::Linear(kNumInputs, kWidth));
  for (std::int64_t i = 0; i < kNumBlocks; ++i) {
    blocks.push_back(register_module("block_" + std::to_string(i), Block()));
  }
  head = register_module("head", torch::nn::Linear(kWidth, kNumClasses));
  fill(*this);
}

at::Tensor BlockNet::forward(const at::Tensor& x, UnitRunner& runner) {
  at::Tensor h = stem(x);
  for (Block& block : blocks) h = calls_directly ? block->forward(h) : runner.run(block, h);
  return head(h);
}

torch::nn::Sequential make_sequential() {
  torch::nn::Sequential model;
  model->push_back("in", torch::nn::Linear(kNumInputs, kWidth));
  for (std::int64_t i = 0; i < kNumBlocks; ++i) model->push_back("block_" + std::to_string(i), Block());
  model->push_back("out", torch::nn::Linear(kWidth, kNumClasses));
  fill(*model);
  return model;
}

void fill(torch::nn::Module& model) {
  const at::NoGradGuard no_gradients;
  double phase = 0;
  for (at::Tensor& parameter : model.parameters()) {
    parameter.copy_((at::arange(parameter.numel(), at::kFloat) + phase).sin().mul(0.3).view(parameter.sizes()));
    phase += 0.37;
  }
}

Batch batch_of(int step, int rank, int num_ranks, at::ScalarType type) {
  constexpr std::int64_t kRows = 12;
  const std::int64_t own = kRows / num_ranks;
  const at::Tensor x = (at::arange(kRows * kNumInputs, at::kFloat) * 0.7 + step).cos().view({kRows, kNumInputs});
  const at::Tensor y = at::arange(kRows).add(step).remainder(kNumClasses);
  return {x.narrow(0, rank * own, own).to(type), y.narrow(0, rank * own, own)};
}

at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.to(at::kFloat), targets);
}

}  // namespace tessera
