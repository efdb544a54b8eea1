#include "model/layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <memory>
#include <optional>

#include "kernels/layer_norm.h"
#include "kernels/rms_norm.h"
#include "model/parameters.h"

namespace tessera {
kernels::RmsWeight rms_weight_of(NormKind kind) {
  if (kind == NormKind::kRmsOnePlus) return kernels::RmsWeight::kOnePlus;
  return kind == NormKind::kRms ? kernels::RmsWeight::kAfterRounding : kernels::RmsWeight::kBeforeRounding;
}

at::Tensor Projection::operator()(const at::Tensor& x) const {
  return at::linear(x, matrix(), bias.defined() ? std::optional(bias) : std::nullopt);
}

at::Tensor DecoderNorm::operator()(const at::Tensor& x) const {
  if (kind == NormKind::kLayer) return kernels::layer_norm(x, weight, bias, epsilon);
  return kernels::rms_norm(x, weight, epsilon, rms_weight_of(kind));
}

std::pair<at::Tensor, at::Tensor> DecoderNorm::of_sum(const at::Tensor& x, const at::Tensor& residual) const {
  if (kind == NormKind::kLayer) return kernels::residual_layer_norm(x, residual, weight, bias, epsilon);
  return kernels::residual_rms_norm(x, residual, weight, epsilon, rms_weight_of(kind));
}

torch::nn::Module& level_of(torch::nn::Module& parent, const std::string& path) {
  if (path.empty()) return parent;
  const std::size_t dot = path.find('.');
  const std::string name = path.substr(0, dot);
  const auto children = parent.named_children();
  const auto* found = children.find(name);
  torch::nn::Module& child = found != nullptr ? **found : *parent.register_module(name, std::make_shared<NameLevel>());
  return dot == std::string::npos ? child : level_of(child, path.substr(dot + 1));
}

at::Tensor LayerMaker::parameter(const std::string& path, at::IntArrayRef sizes) const {
  const std::size_t dot = path.rfind('.');
  torch::nn::Module& level = dot == std::string::npos ? parent : level_of(parent, path.substr(0, dot));
  return level.register_parameter(dot == std::string::npos ? path : path.substr(dot + 1), at::empty(sizes, options));
}

Projection LayerMaker::projection(const std::string& name, std::int64_t in, std::int64_t out, bool has_bias) const {
  if (name.empty()) return {};
  const std::string stem = name.ends_with('_') ? name : name + ".";
  Projection made;
  made.stores_transposed = shape.stores_transposed;
  made.weight = made.stores_transposed ? parameter(stem + "weight", {in, out}) : parameter(stem + "weight", {out, in});
  if (has_bias) made.bias = parameter(stem + "bias", {out});
  return made;
}

DecoderNorm LayerMaker::norm(const std::string& name, std::int64_t width) const {
  if (name.empty()) return {};
  DecoderNorm made{parameter(name + ".weight", {width}), {}, shape.norm, shape.norm_epsilon};
  if (shape.norm == NormKind::kLayer) made.bias = parameter(name + ".bias", {width});
  return made;
}

}  // namespace tessera
