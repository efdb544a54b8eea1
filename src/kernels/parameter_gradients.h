// The gradients that a node of many operations computes for its parameters, from where they are written to where they
// go: to those who collect them (gradient_room.h), or to autograd.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "kernels/gradient_room.h"

namespace tessera::kernels {

class ParameterGradients {
 public:
  // gives: gives_gradients() held in forward.
  explicit ParameterGradients(bool gives) : gives_(gives) {}

  // Where to compute a parameter's gradient, all of which the caller overwrites; undefined if nobody wants it.
  at::Tensor place(const at::Tensor& parameter) {
    if (!parameter.defined() || !parameter.requires_grad()) return {};
    parameters_.push_back(parameter);
    const at::Tensor room = gradient_room(parameter);
    gradients_.push_back(room.defined() ? room : at::empty(parameter.sizes(), parameter.options()));
    return gradients_.back();
  }

  // Gradients so far are complete, and their parameters are not read again: whoever collects them gets them. On a GPU
  // all at once at the end, since each time takes the host a while; on a CPU early, since none waits then.
  void give_on_cpu() {
    if (!parameters_.empty() && !parameters_.front().is_cuda()) give();
  }
  void give() {
    if (!gives_) return;
    give_gradients(parameters_, gradients_);
    parameters_.clear();
    gradients_.clear();
  }

  // For autograd; undefined if it was not wanted. A parameter in two places has two gradients: each call takes one.
  at::Tensor take(const at::Tensor& parameter) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (gradients_[i].defined() && parameters_[i].is_same(parameter)) return std::move(gradients_[i]);
    }
    return {};
  }

 private:
  bool gives_;
  std::vector<at::Tensor> parameters_, gradients_;
};

}  // namespace tessera::kernels
