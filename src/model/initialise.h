// Initial weights of a model that is trained from scratch.
#pragma once

#include <cstdint>

#include "model/language_model.h"

namespace tessera {

// As transformers does for BLOOM: matrices and embeddings are normal with the config's initializer_range, biases 0,
// norms 1 and 0. A parameter's values depend only on the seed and its name, not on device or order, and on the type
// only through rounding. So a rank that holds only some of the units gets the same model.
void initialise(LanguageModel& model, std::uint64_t seed);

// The same for one parameter, by its name in the model.
void initialise_parameter(at::Tensor& parameter, const std::string& name, double initializer_range, std::uint64_t seed);

}  // namespace tessera
