// A step's constants of SGD, computed once in float64 and rounded to float32: the same for every processor.
#pragma once

namespace tessera::kernels {

struct SgdConstants {
  float gradient_scale;
  float weight_decay;
  float momentum, undampened;  // undampened: 1 - dampening, 1 at the first step
  float keep_momentum;         // momentum, or 0 at the first step
  bool has_momentum, nesterov;
  float minus_learning_rate;
};

}  // namespace tessera::kernels
