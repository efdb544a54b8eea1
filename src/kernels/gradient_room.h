// Where the gradient of a parameter may be computed, and who takes it, so that it need not be moved afterwards.
//
// Whoever collects gradients in buffers of its own (parallel/) offers room in them and takes gradients; a kernel that
// computes the gradient of a whole weight asks for both. On GPUs alone: there the moves cost more than a tenth of the
// products, and autograd's own nodes, one for each parameter, a fifth of the host's time in backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace tessera::kernels {

// Of the parameter's shape and type, and nobody else's; undefined if there is none now.
using GradientRoom = std::function<at::Tensor()>;
// As autograd's accumulation: a parameter may get several gradients in one backward.
using GradientTaker = std::function<void(at::Tensor)>;

// From any thread. An offer must be withdrawn before the parameter is destroyed.
void offer_gradient_room(const at::Tensor& parameter, GradientRoom room);
void withdraw_gradient_room(const at::Tensor& parameter);
void take_gradients(const at::Tensor& parameter, GradientTaker taker);
void stop_taking_gradients(const at::Tensor& parameter);

// The caller overwrites all of it and gives it to the taker or to autograd. Undefined: allocate.
at::Tensor gradient_room(const at::Tensor& parameter);

bool is_gradient_taken(const at::Tensor& parameter);
// Only where it is taken.
void give_gradient(const at::Tensor& parameter, at::Tensor gradient);

}  // namespace tessera::kernels
