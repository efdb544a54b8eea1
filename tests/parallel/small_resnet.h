// A residual network of a few thousand parameters, with batch norms, for images of any size.
// tools/references/parallel_losses.py computes the same in Python.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

class SmallResNet : public UnitModel {
 public:
  static constexpr std::int64_t kChannels = 12, kNumBlocks = 3, kNumClasses = 7;
  explicit SmallResNet(std::uint64_t seed = 1);

  const std::vector<Unit>& units() const override { return units_; }
  // images_BCHW: [B, 3, H, W] in the parameters' type; returns [B, kNumClasses].
  at::Tensor forward(const at::Tensor& images_BCHW, UnitRunner& runner);

 private:
  struct Block;
  torch::nn::Conv2d conv1_ = nullptr;
  torch::nn::BatchNorm2d bn1_ = nullptr;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::Linear fc_ = nullptr;
  std::vector<Unit> units_;
};

}  // namespace tessera
