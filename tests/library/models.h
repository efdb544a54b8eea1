// Models as a user of the library writes them, one for each way to shard.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <vector>

#include "tessera/unit.h"

namespace tessera {

inline constexpr std::int64_t kNumInputs = 17, kWidth = 41, kNumClasses = 5, kNumBlocks = 3;

// Not divided into units, and knows nothing of Tessera.
struct PlainNet : torch::nn::Module {
  PlainNet();
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear tied{nullptr};  // the same module as `second`: parameters with two names
};

struct BlockImpl : torch::nn::Module {
  BlockImpl();
  at::Tensor forward(const at::Tensor& x);

  torch::nn::Linear inner{nullptr};
};
TORCH_MODULE(Block);

// Its forward runs its blocks through a runner.
struct BlockNet : torch::nn::Module {
  BlockNet();
  at::Tensor forward(const at::Tensor& x, UnitRunner& runner);

  torch::nn::Linear stem{nullptr}, head{nullptr};
  std::vector<Block> blocks;
  bool calls_directly = false;  // a user's mistake: not through the runner
};

torch::nn::Sequential make_sequential();

// Values that depend only on the parameter's position, since thread ranks share torch's generator.
void fill(torch::nn::Module& model);

struct Batch {
  at::Tensor x, y;
};
// The rank's part of a batch. The whole batch is the same for every number of ranks that divides 12.
Batch batch_of(int step, int rank, int num_ranks, at::ScalarType type = at::kFloat);

at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace tessera
