// ResNet-50 as torchvision computes it (the stride in the 3x3 convolution): parameters and buffers have the names,
// shapes and order of its state_dict, so its weights load as they are; forward, gradients and batch-norm statistics are
// the same in train() and in eval().
//
// The units are the 16 blocks, "layer1.0" to "layer4.2", kind "Bottleneck"; the root is the stem (conv1, bn1) and fc.
// Activations are channels-last inside, whatever the layout of the images; parameters stay in plain layout, so that a
// flat buffer of them equals their layout in a file.
//
// A block may be recomputed in the backward pass (UnitRunner): only the first pass updates the statistics.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

// A block's output channels over those of its inner convolutions.
inline constexpr std::int64_t kExpansion = 4;
struct ResNetLayer {
  std::int64_t channels, num_blocks, stride;  // the stride of its first block
};
inline constexpr std::int64_t kStemChannels = 64;
inline constexpr std::array<ResNetLayer, 4> kResNet50Layers = {{{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}}};

class Bottleneck;

class ResNet50 : public UnitModel {
 public:
  // Weights are drawn from torch's default CPU generator, from torchvision's distributions and in its order: the same
  // torch::manual_seed gives the same weights.
  explicit ResNet50(std::int64_t num_classes = 1000);

  const std::vector<Unit>& units() const override { return units_; }
  std::int64_t num_classes() const { return num_classes_; }

  // images_BCHW: [B, 3, H, W]; returns logits [B, num_classes]. Computes in the images' type: with float32 parameters
  // and half images it computes what torch's autocast does, batch-norm in float32 included.
  at::Tensor forward(const at::Tensor& images_BCHW, UnitRunner& runner);
  at::Tensor forward(const at::Tensor& images_BCHW);

 private:
  void add_layer(const std::string& name, std::int64_t in_channels, const ResNetLayer& shape);
  void initialise();

  std::int64_t num_classes_;
  torch::nn::Conv2d conv1_ = nullptr;
  torch::nn::BatchNorm2d bn1_ = nullptr;
  std::vector<std::shared_ptr<Bottleneck>> blocks_;
  torch::nn::Linear fc_ = nullptr;
  std::vector<Unit> units_;
};

}  // namespace tessera
