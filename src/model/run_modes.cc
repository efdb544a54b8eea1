#include "model/run_modes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// How to compute the unit again.
struct Recompute : torch::CustomClassHolder {
  Recompute(UnitRunner& runner, const Unit& what, UnitRunner::Body how)
      : inner(runner), unit(what), body(std::move(how)) {}

  UnitRunner& inner;
  Unit unit;
  UnitRunner::Body body;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  // `anchor` needs a gradient, so that backward reaches the unit's parameters even if its input needs none.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& /*anchor*/,
                            const c10::intrusive_ptr<Recompute>& recompute) {
    context->save_for_backward({input});
    context->saved_data["recompute"] = c10::IValue::make_capsule(recompute);
    context->saved_data["input_needs_gradient"] = input.requires_grad();
    const at::NoGradGuard no_grad;
    return recompute->inner.run(recompute->unit, input, recompute->body);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["recompute"].toCapsule();
    auto& recompute = static_cast<Recompute&>(*capsule);
    const bool needs_gradient = context->saved_data["input_needs_gradient"].toBool();
    const at::Tensor input = context->get_saved_variables()[0].detach().requires_grad_(needs_gradient);
    at::Tensor output;
    {
      const at::AutoGradMode with_grad(true);
      output = recompute.inner.run(recompute.unit, input, recompute.body);
    }
    if (!output.requires_grad()) return {at::Tensor(), at::Tensor(), at::Tensor()};  // a unit that is not trained
    // A backward pass within the backward pass: it adds to the parameters' gradients itself.
    torch::autograd::backward({output}, {grads[0]});
    return {input.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor CheckpointRunner::run(const Unit& unit, const at::Tensor& input, const Body& body) {
  if (!c10::GradMode::is_enabled()) return inner_.run(unit, input, body);
  const at::Tensor anchor = at::empty({0}, input.options()).requires_grad_();
  return Checkpoint::apply(input, anchor, c10::make_intrusive<Recompute>(inner_, unit, body));
}

void pass_idly(const UnitModel& model, UnitRunner& runner, at::Device device) {
  const at::Tensor nothing = at::zeros({1}, at::device(device));
  for (const Unit& unit : model.units()) runner.run(unit, nothing, [](const at::Tensor& input) { return input; });
}

}  // namespace tessera
