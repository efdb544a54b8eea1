// What libtorch's modules lack: word that backward has come to a unit, has left it, or has a parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace tessera {

using BackwardHook = std::function<void()>;

// The tensor itself (not to be modified in place); `hook` runs when its gradient passes. The hook must outlive the
// graph's backward. A tensor that needs no gradient is returned as it is, and the hook never runs.
at::Tensor on_gradient_of(const at::Tensor& tensor, BackwardHook hook);

// `hook` runs each time that autograd has put a gradient into the parameter's .grad; an empty one removes it.
void on_accumulated_gradient(const at::Tensor& parameter, BackwardHook hook);

}  // namespace tessera
