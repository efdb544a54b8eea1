// A step's constants of Lion, computed once in float64 and rounded to float32: the same for every processor.
#pragma once

namespace tessera::kernels {

struct LionConstants {
  float gradient_scale;
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float keep;  // 1 - learning_rate * weight_decay, on the parameter
  float minus_learning_rate;
};

}  // namespace tessera::kernels
