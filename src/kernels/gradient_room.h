// Where the gradient of a parameter may be computed, so that it need not be moved afterwards.
//
// Whoever collects gradients in buffers of its own (parallel/unit_gradient.h) offers room in them; a kernel that
// computes the gradient of a whole weight asks for it, and autograd makes what it returns the parameter's .grad. On
// GPUs alone, where the moves cost more than a tenth of the products.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace tessera::kernels {

// Of the parameter's shape and type, and nobody else's; undefined if there is none now.
using GradientRoom = std::function<at::Tensor()>;

// From any thread. An offer must be withdrawn before the parameter is destroyed.
void offer_gradient_room(const at::Tensor& parameter, GradientRoom room);
void withdraw_gradient_room(const at::Tensor& parameter);

// The caller overwrites all of it and gives it to autograd as the gradient. Undefined: allocate.
at::Tensor gradient_room(const at::Tensor& parameter);

}  // namespace tessera::kernels
