#include "model/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>
#include <torch/nn/init.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/image_ops.h"

// B batch, C channels, H and W height and width.
namespace tessera {

namespace {

torch::nn::Conv2d convolution(std::int64_t in_channels, std::int64_t out_channels, std::int64_t size,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in_channels, out_channels, size).stride(stride).padding(size / 2).bias(false));
}

// The weight in the type of its input, as AMP casts it; then also channels-last, which the convolution would otherwise
// convert it to.
at::Tensor convolve(torch::nn::Conv2dImpl& convolution, const at::Tensor& x_BCHW) {
  at::Tensor weight = convolution.weight;
  if (weight.scalar_type() != x_BCHW.scalar_type()) {
    weight = weight.to(x_BCHW.scalar_type(), /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::ChannelsLast);
  }
  return at::conv2d(x_BCHW, weight, /*bias=*/{}, convolution.options.stride(),
                    std::get<torch::ExpandingArray<2>>(convolution.options.padding()));
}

// What torch::nn::BatchNorm2d computes, with what follows it, except that a second pass over the same batch can leave
// the statistics alone.
class Norm {
 public:
  Norm(torch::nn::BatchNorm2dImpl& norm, const at::Tensor& x_BCHW, bool move_statistics)
      : x_(x_BCHW), uses_batch_(norm.is_training()), is_fused_(uses_batch_ && kernels::batch_norm_serves(x_BCHW)) {
    if (uses_batch_ && x_BCHW.numel() <= x_BCHW.size(1)) {
      throw Error(
          fmt::format("batch norm in training needs more than one value per channel, found [{}]: use a larger batch "
                      "or larger images",
                      fmt::join(x_BCHW.sizes().begin(), x_BCHW.sizes().end(), ", ")));
    }
    if (uses_batch_ && move_statistics) norm.num_batches_tracked.add_(1);
    // With half types the statistics stay float32, and scale and shift must be float32 too.
    const at::ScalarType type = norm.running_mean.scalar_type();
    how_ = {norm.weight.to(type), norm.bias.to(type), {}, {}, *norm.options.momentum(), norm.options.eps()};
    if (uses_batch_ && !move_statistics) return;
    how_.running_mean = norm.running_mean;
    how_.running_var = norm.running_var;
  }

  at::Tensor plain() const {
    if (is_fused_) return kernels::batch_norm(x_, how_, kernels::BatchNormThen::kNothing);
    return at::batch_norm(x_, how_.weight, how_.bias, how_.running_mean, how_.running_var, uses_batch_, how_.momentum,
                          how_.epsilon, /*cudnn_enabled=*/true);
  }
  at::Tensor relu() const {
    return is_fused_ ? kernels::batch_norm(x_, how_, kernels::BatchNormThen::kRelu) : plain().relu_();
  }
  // residual(): what is added
  template <typename Residual>
  at::Tensor add_relu(const Residual& residual) const {
    if (is_fused_) return kernels::batch_norm(x_, how_, kernels::BatchNormThen::kAddRelu, residual());
    // Added into the tensor that batch-norm just made: batch-norm's gradient needs only its input.
    return plain().add_(residual()).relu_();
  }

 private:
  at::Tensor x_;
  bool uses_batch_, is_fused_;
  kernels::BatchNorm how_;
};

}  // namespace

class Bottleneck : public torch::nn::Module {
 public:
  Bottleneck(std::int64_t in_channels, std::int64_t channels, std::int64_t stride) {
    // Drawn before the others and registered after them: torchvision's order for both.
    const bool changes_shape = stride != 1 || in_channels != channels * kExpansion;
    if (changes_shape) {
      shortcut_ = convolution(in_channels, channels * kExpansion, 1, stride);
      shortcut_norm_ = torch::nn::BatchNorm2d(channels * kExpansion);
    }
    conv1_ = register_module("conv1", convolution(in_channels, channels, 1, 1));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(channels));
    conv2_ = register_module("conv2", convolution(channels, channels, 3, stride));
    bn2_ = register_module("bn2", torch::nn::BatchNorm2d(channels));
    conv3_ = register_module("conv3", convolution(channels, channels * kExpansion, 1, 1));
    bn3_ = register_module("bn3", torch::nn::BatchNorm2d(channels * kExpansion));
    if (changes_shape) {
      auto downsample = std::make_shared<torch::nn::Module>();
      downsample->register_module("0", shortcut_);
      downsample->register_module("1", shortcut_norm_);
      register_module("downsample", downsample);
    }
  }

  at::Tensor forward(const at::Tensor& x_BCHW, bool move_statistics) {
    at::Tensor out = Norm(*bn1_, convolve(*conv1_, x_BCHW), move_statistics).relu();
    out = Norm(*bn2_, convolve(*conv2_, out), move_statistics).relu();
    return Norm(*bn3_, convolve(*conv3_, out), move_statistics).add_relu([&] {
      if (shortcut_.is_empty()) return x_BCHW;
      return Norm(*shortcut_norm_, convolve(*shortcut_, x_BCHW), move_statistics).plain();
    });
  }

 private:
  torch::nn::Conv2d conv1_ = nullptr, conv2_ = nullptr, conv3_ = nullptr, shortcut_ = nullptr;
  torch::nn::BatchNorm2d bn1_ = nullptr, bn2_ = nullptr, bn3_ = nullptr, shortcut_norm_ = nullptr;
};

ResNet50::ResNet50(std::int64_t num_classes) : UnitModel("ResNet50"), num_classes_(num_classes) {
  if (num_classes < 1) throw UsageError(fmt::format("a ResNet of {} classes (expected: at least 1)", num_classes));
  conv1_ = register_module("conv1", convolution(3, kStemChannels, 7, 2));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(kStemChannels));
  std::int64_t channels = kStemChannels;
  for (std::size_t i = 0; i < kResNet50Layers.size(); ++i) {
    add_layer(fmt::format("layer{}", i + 1), channels, kResNet50Layers[i]);
    channels = kResNet50Layers[i].channels * kExpansion;
  }
  fc_ = register_module("fc", torch::nn::Linear(channels, num_classes));
  initialise();
}

void ResNet50::add_layer(const std::string& name, std::int64_t in_channels, const ResNetLayer& shape) {
  auto layer = register_module(name, std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape.num_blocks; ++i) {
    auto block = std::make_shared<Bottleneck>(i == 0 ? in_channels : shape.channels * kExpansion, shape.channels,
                                              i == 0 ? shape.stride : 1);
    layer->register_module(std::to_string(i), block);
    units_.push_back({fmt::format("{}.{}", name, i), "Bottleneck", block.get()});
    blocks_.push_back(std::move(block));
  }
}

// Overwrites the constructors' draws, as torchvision does; batch-norm's 1 and 0 and fc keep theirs.
void ResNet50::initialise() {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

at::Tensor ResNet50::forward(const at::Tensor& images_BCHW, UnitRunner& runner) {
  if (images_BCHW.dim() != 4 || images_BCHW.size(1) != 3) {
    throw Error(fmt::format("ResNet-50 expects images [batch, 3, height, width], found [{}]",
                            fmt::join(images_BCHW.sizes().begin(), images_BCHW.sizes().end(), ", ")));
  }
  at::Tensor x = convolve(*conv1_, images_BCHW.contiguous(at::MemoryFormat::ChannelsLast));
  x = kernels::max_pool(Norm(*bn1_, x, true).relu());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    // Shared by the copies of the body that a runner keeps.
    auto is_first = std::make_shared<bool>(true);
    x = runner.run(units_[i], x, [block = blocks_[i], is_first](const at::Tensor& input) {
      return block->forward(input, std::exchange(*is_first, false));
    });
  }
  const at::Tensor features = at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
  return at::linear(features, fc_->weight.to(features.scalar_type()), fc_->bias.to(features.scalar_type()));
}

at::Tensor ResNet50::forward(const at::Tensor& images_BCHW) {
  UnitRunner runner;
  return forward(images_BCHW, runner);
}

}  // namespace tessera
