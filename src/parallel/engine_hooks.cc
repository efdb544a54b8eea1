#include "parallel/engine_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace tessera {
namespace {

using torch::autograd::variable_list;

// A plain autograd node: a custom Function costs ten times as much, for every unit in every pass.
class PassingNode : public torch::autograd::Node {
 public:
  PassingNode(torch::autograd::edge_list&& next, BackwardHook hook) : Node(std::move(next)), hook_(std::move(hook)) {}
  variable_list apply(variable_list&& gradients) override {
    hook_();
    return std::move(gradients);
  }

 private:
  BackwardHook hook_;
};

class AccumulatedHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit AccumulatedHook(BackwardHook hook) : hook_(std::move(hook)) {}
  void operator()(const at::Tensor&) override { hook_(); }

 private:
  BackwardHook hook_;
};

}  // namespace

at::Tensor on_gradient_of(const at::Tensor& tensor, BackwardHook hook) {
  if (!tensor.requires_grad()) return tensor;
  at::Tensor passed = tensor.detach();
  torch::autograd::set_history(
      passed, std::make_shared<PassingNode>(torch::autograd::collect_next_edges(tensor), std::move(hook)));
  return passed;
}

void on_accumulated_gradient(const at::Tensor& parameter, BackwardHook hook) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                 hook ? std::make_unique<AccumulatedHook>(std::move(hook)) : nullptr);
}

}  // namespace tessera
