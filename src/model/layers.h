// What a decoder is made of: projections and norms, registered under the names that files have.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <utility>

#include "kernels/sizes.h"
#include "model/decoder_shape.h"

namespace tessera {

// out = x weight^T + bias.
struct Projection {
  at::Tensor weight, bias;         // bias is undefined if there is none
  bool stores_transposed = false;  // weight is [in, out], else [out, in]

  bool exists() const { return weight.defined(); }
  at::Tensor matrix() const { return stores_transposed ? weight.t() : weight; }  // [out, in]
  at::Tensor operator()(const at::Tensor& x) const;
};

kernels::RmsWeight rms_weight_of(NormKind kind);  // of any but kLayer

// Of [..., C].
struct DecoderNorm {
  at::Tensor weight, bias;
  NormKind kind = NormKind::kLayer;
  double epsilon = 0;

  bool exists() const { return weight.defined(); }
  at::Tensor operator()(const at::Tensor& x) const;
  // {x + residual, its norm}
  std::pair<at::Tensor, at::Tensor> of_sum(const at::Tensor& x, const at::Tensor& residual) const;
};

// Registers parameters below `parent`, uninitialised. An empty name gives one that does not exist.
struct LayerMaker {
  torch::nn::Module& parent;
  const DecoderShape& shape;
  const at::TensorOptions& options;

  at::Tensor parameter(const std::string& path, at::IntArrayRef sizes) const;
  Projection projection(const std::string& name, std::int64_t in, std::int64_t out, bool has_bias) const;
  DecoderNorm norm(const std::string& name, std::int64_t width) const;
};

// The module at a dotted path below `parent`; levels that are missing are made.
torch::nn::Module& level_of(torch::nn::Module& parent, const std::string& path);

}  // namespace tessera
