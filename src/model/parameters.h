// Modules that only hold parameters, under the names that transformers and torch give them.
//
// They are created uninitialised: a model is either loaded or initialised as a whole (initialise.h), and drawing random
// numbers for half a billion weights that a file then overwrites takes seconds.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// "weight" of any shape and optionally "bias" of the weight's first dimension: a linear layer, a layer-norm, or an
// embedding.
class Affine : public torch::nn::Module {
 public:
  Affine(std::vector<std::int64_t> shape, bool has_bias, const at::TensorOptions& options) {
    weight = register_parameter("weight", at::empty(shape, options));
    if (has_bias) bias = register_parameter("bias", at::empty({shape.front()}, options));
  }

  at::Tensor weight, bias;  // bias is undefined if there is none
};

// A level of names, without parameters of its own.
class NameLevel : public torch::nn::Module {};

// A new child of `parent`.
inline std::shared_ptr<Affine> add_affine(torch::nn::Module& parent, const std::string& name,
                                          std::vector<std::int64_t> shape, bool has_bias,
                                          const at::TensorOptions& options) {
  return parent.register_module(name, std::make_shared<Affine>(std::move(shape), has_bias, options));
}

}  // namespace tessera
