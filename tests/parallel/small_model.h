// A model with everything that makes spreading hard: a tied weight, odd sizes, a frozen parameter, one that a step does
// not use, a unit smaller than a block, and a scalar.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

class SmallModel : public UnitModel {
 public:
  static constexpr std::int64_t kVocabulary = 61, kWidth = 33, kInner = 130;
  explicit SmallModel(std::int64_t num_blocks = 3, std::uint64_t seed = 1);

  const std::vector<Unit>& units() const override { return units_; }
  // Sum of the cross-entropy over all tokens: ids and targets [N] int64.
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& targets, UnitRunner& runner);

 private:
  struct Block;
  at::Tensor embedding_, scale_, unused_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<Unit> units_;
};

}  // namespace tessera
