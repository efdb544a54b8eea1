// Which modules of a model are units of their own: all that it lists, or by class or size.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/unit.h"

namespace tessera {

struct UnitRule {
  // Class names ("BloomBlock", "TransformerEncoderLayer", dotted ones too: the last word counts); empty: any.
  std::vector<std::string> kinds{};
  // Units with fewer parameters than this stay with the root.
  std::int64_t min_num_parameters = 0;
};

// Of the units that a model lists those that the rule picks, in their order. Throws UsageError where a class is none of
// the model's, naming those that are.
std::vector<Unit> select_units(const std::vector<Unit>& units, const UnitRule& rule);

}  // namespace tessera
