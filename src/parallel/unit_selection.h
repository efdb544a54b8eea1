// Which modules of a model become units: all that it lists, or a choice by class or size.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

struct UnitRule {
  // Class names ("BloomBlock", "TransformerEncoderLayer", dotted ones too: the last word counts); empty: any.
  std::vector<std::string> kinds{};
  // Units with fewer parameters than this stay with the root.
  std::int64_t min_num_parameters = 0;
};

// The model's units that the rule picks, in their order. Throws UsageError if the model has no units of a class, naming
// the classes that it has.
std::vector<Unit> select_units(const std::vector<Unit>& units, const UnitRule& rule);

}  // namespace tessera
