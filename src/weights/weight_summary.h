// A summary of a set of weights, from its headers alone: parameters and bytes by part of the model.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "weights/weights.h"

namespace tessera {

// A block ("transformer.h.3": the path up to its number), or the module of tensors outside all blocks
// ("transformer.ln_f").
struct WeightPart {
  std::string name;
  bool is_block = false;
  std::int64_t num_tensors = 0, num_parameters = 0, num_buffer_elements = 0, num_bytes = 0;
  std::set<std::string> types;  // "bfloat16"
};

struct WeightTie {
  std::string name, held_by, said_by;  // said_by: "the file", "config.json"
};

struct WeightSummary {
  std::vector<WeightPart> parts;  // in the order of their first tensor in the files
  WeightPart all;                 // their sum
  std::int64_t num_parameters_in_blocks = 0;
  std::vector<WeightTie> ties;  // tied data counts once
};

// `config` is config.json's, an empty object if there is none. Batch-norm statistics and integers are buffers, not
// parameters.
WeightSummary summarise(const Weights& weights, const Json& config);

}  // namespace tessera
