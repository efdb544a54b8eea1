// A step's constants of AdamW and Adam, computed once in float64 and rounded to float32: the same for every processor.
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

}  // namespace tessera::kernels
