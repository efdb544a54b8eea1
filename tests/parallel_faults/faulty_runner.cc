#include "parallel_faults/faulty_runner.h"

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct HeldFault : torch::CustomClassHolder {
  explicit HeldFault(GradientFaultFunction what) : fault(std::move(what)) {}
  GradientFaultFunction fault;
};

struct FaultyIdentity : torch::autograd::Function<FaultyIdentity> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            const c10::intrusive_ptr<HeldFault>& held) {
    context->saved_data["fault"] = c10::IValue::make_capsule(held);
    return tensor.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["fault"].toCapsule();
    return {static_cast<HeldFault&>(*capsule).fault(gradients[0]), at::Tensor()};
  }
};

}  // namespace

at::Tensor with_faulty_gradient(const at::Tensor& tensor, GradientFaultFunction fault) {
  return FaultyIdentity::apply(tensor, c10::make_intrusive<HeldFault>(std::move(fault)));
}

}  // namespace tessera
