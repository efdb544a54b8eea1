#include "parallel/small_resnet.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

namespace tessera {
namespace {

torch::nn::Conv2d convolution(std::int64_t in_channels, std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in_channels, SmallResNet::kChannels, 3).stride(stride).padding(1).bias(false));
}

// Normalises in float32 whatever type the images have: at::batch_norm wants scale and shift in the type of the
// statistics.
at::Tensor norm(torch::nn::BatchNorm2dImpl& how, const at::Tensor& x_BCHW) {
  if (how.is_training()) how.num_batches_tracked.add_(1);
  return at::batch_norm(x_BCHW, how.weight.to(at::kFloat), how.bias.to(at::kFloat), how.running_mean, how.running_var,
                        how.is_training(), *how.options.momentum(), how.options.eps(), /*cudnn_enabled=*/true);
}

}  // namespace

struct SmallResNet::Block : torch::nn::Module {
  Block() {
    conv1 = register_module("conv1", convolution(kChannels, 1));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(kChannels));
    conv2 = register_module("conv2", convolution(kChannels, 1));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(kChannels));
  }
  at::Tensor forward(const at::Tensor& x_BCHW) {
    return at::silu(x_BCHW + norm(*bn2, conv2(at::silu(norm(*bn1, conv1(x_BCHW))))));
  }
  torch::nn::Conv2d conv1 = nullptr, conv2 = nullptr;
  torch::nn::BatchNorm2d bn1 = nullptr, bn2 = nullptr;
};

SmallResNet::SmallResNet(std::uint64_t seed) : UnitModel("SmallResNet") {
  conv1_ = register_module("conv1", convolution(3, 2));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(kChannels));
  const auto layer = register_module("layer", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < kNumBlocks; ++i) {
    blocks_.push_back(layer->register_module(std::to_string(i), std::make_shared<Block>()));
    units_.push_back({fmt::format("layer.{}", i), "Block", blocks_.back().get()});
  }
  fc_ = register_module("fc", torch::nn::Linear(kChannels, kNumClasses));
  // Not from the generator of the whole process, which thread ranks share.
  const at::NoGradGuard no_gradients;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  for (at::Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) parameter.copy_(at::randn(parameter.sizes(), generator).mul_(0.2));
  }
  fc_->bias.zero_();
}

at::Tensor SmallResNet::forward(const at::Tensor& images_BCHW, UnitRunner& runner) {
  at::Tensor x = at::silu(norm(*bn1_, conv1_(images_BCHW)));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = runner.run(units_[i], x, [block = blocks_[i].get()](const at::Tensor& input) { return block->forward(input); });
  }
  return fc_(x.mean(at::IntArrayRef{2, 3}));
}

}  // namespace tessera
