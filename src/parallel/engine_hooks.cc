#include "parallel/engine_hooks.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct HeldHook : torch::CustomClassHolder {
  explicit HeldHook(BackwardHook what) : hook(std::move(what)) {}
  BackwardHook hook;
};

class Identity : public torch::autograd::Function<Identity> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            const c10::intrusive_ptr<HeldHook>& held) {
    context->saved_data["hook"] = c10::IValue::make_capsule(held);
    return tensor.view_as(tensor);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["hook"].toCapsule();
    static_cast<HeldHook&>(*capsule).hook();
    return {gradients[0], at::Tensor()};
  }
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
  return Identity::apply(tensor, c10::make_intrusive<HeldHook>(std::move(hook)));
}

void on_accumulated_gradient(const at::Tensor& parameter, BackwardHook hook) {
  torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                 hook ? std::make_unique<AccumulatedHook>(std::move(hook)) : nullptr);
}

}  // namespace tessera
