// The numbers of an optimizer's formula.
#pragma once

namespace tessera {

// Every number that an optimizer may read besides the learning rate; each reads those in its formula.
struct OptimizerNumbers {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};

}  // namespace tessera
