// A runner around the engine that makes one unit fail: in forward, or when backward reaches it.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <string>

#include "tessera/unit.h"

namespace tessera {

// Returns the tensor itself; `fault` is called when its gradient arrives, and what it returns is passed on.
using GradientFaultFunction = std::function<at::Tensor(const at::Tensor& gradient)>;
at::Tensor with_faulty_gradient(const at::Tensor& tensor, GradientFaultFunction fault);

class FaultyRunner : public UnitRunner {
 public:
  FaultyRunner(UnitRunner& inner, std::string unit) : inner_(inner), unit_(std::move(unit)) {}

  std::function<void()> in_forward;
  GradientFaultFunction in_backward;

  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override {
    if (unit.name != unit_) return inner_.run(unit, input, body);
    return inner_.run(unit, input, [&](const at::Tensor& x) {
      if (in_forward) in_forward();
      const at::Tensor y = body(x);
      return in_backward ? with_faulty_gradient(y, in_backward) : y;
    });
  }

 private:
  UnitRunner& inner_;
  std::string unit_;
};

}  // namespace tessera
