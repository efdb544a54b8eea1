// Where the gradient of a parameter may be computed, and who takes it, so that it need not be moved afterwards.
//
// Whoever collects gradients in buffers of its own (parallel/engine.h) offers room in them and takes gradients; a node
// that computes the gradients of whole parameters asks for both. It pays on GPUs: there the moves cost more than a
// tenth of the products, and autograd's own nodes, one for each parameter, a fifth of the host's time in backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::kernels {

struct GivenGradient {
  std::size_t slot = 0;
  at::Tensor gradient;
};

class GradientCollector {
 public:
  virtual ~GradientCollector() = default;
  // Of the parameter's shape and type, and nobody else's; undefined if there is none now.
  virtual at::Tensor room(std::size_t slot) = 0;
  // What one node has computed, each parameter once. One that several nodes use gets several gradients in a backward,
  // either all in this way or all by autograd.
  virtual void take(const std::vector<GivenGradient>& gradients) = 0;
};

// From any thread. The collector calls the parameter by its slot; it must stop before either is destroyed.
void collect_gradient(const at::Tensor& parameter, GradientCollector& collector, std::size_t slot);
void stop_collecting(const at::Tensor& parameter);
bool is_collected(const at::Tensor& parameter);

// Whether a node's gradients can all be given to collectors: every parameter that is trained has one, and the input
// needs a gradient, without which the node would have no edge into the graph.
bool gives_gradients(const at::Tensor& input, std::span<const at::Tensor> parameters);

// The caller overwrites all of it and gives it back, to the collector or to autograd. Undefined: allocate.
at::Tensor gradient_room(const at::Tensor& parameter);
// To their collectors; undefined gradients are left out. Throws Error if a parameter has none.
void give_gradients(std::span<const at::Tensor> parameters, std::span<const at::Tensor> gradients);

}  // namespace tessera::kernels
