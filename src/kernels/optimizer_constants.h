// A step's constants, computed once in float64 and rounded to float32: the same for every processor.
#pragma once

namespace tessera::kernels {

struct AdamWConstants {
  float gradient_scale;
  float l2;    // weight decay added to the gradient
  float keep;  // 1 - learning_rate * weight_decay, on the parameter
  float one_minus_beta1, beta2, one_minus_beta2;
  float inverse_root;  // 1 / sqrt(1 - beta2^step)
  float eps;
  float minus_step_size;  // -learning_rate / (1 - beta1^step)
};

struct SgdConstants {
  float gradient_scale;
  float weight_decay;
  float momentum, undampened;  // undampened: 1 - dampening, 1 at the first step
  float keep_momentum;         // momentum, or 0 at the first step
  bool has_momentum, nesterov;
  float minus_learning_rate;
};

}  // namespace tessera::kernels
