// What libtorch's modules lack: hooks for when backward reaches a unit, leaves it, or has a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace tessera {

using BackwardHook = std::function<void()>;

// Returns the tensor (not to be modified in place); `hook` runs when its gradient passes. The hook must outlive the
// graph's backward. If the tensor needs no gradient, the hook never runs.
at::Tensor on_gradient_of(const at::Tensor& tensor, BackwardHook hook);

// `hook` runs each time autograd has put a gradient into the parameter's .grad; an empty one removes the hook.
void on_accumulated_gradient(const at::Tensor& parameter, BackwardHook hook);

}  // namespace tessera
