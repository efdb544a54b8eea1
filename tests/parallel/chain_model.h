// A model whose passes may run its blocks in any order, any number of times, or not at all.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>
#include <vector>

#include "tessera/unit.h"

namespace tessera {

// A chain of blocks after a weight of the root; each block has a weight, and a bias that a pass may leave out.
struct Chain : UnitModel {
  struct Block : torch::nn::Module {
    Block() {
      weight = register_parameter("weight", at::eye(5) + 0.1 * at::ones({5, 5}));
      bias = register_parameter("bias", 0.1 * at::ones({5}));
    }
    at::Tensor forward(const at::Tensor& x, bool with_bias) const {
      const at::Tensor y = at::mm(x, weight);
      return (with_bias ? y + bias : y).tanh();
    }
    at::Tensor weight, bias;
  };
  explicit Chain(std::size_t num_blocks = 3) : UnitModel("Chain") {
    first = register_parameter("first", at::eye(5) * 0.9);
    for (std::size_t i = 0; i < num_blocks; ++i) {
      blocks.push_back(register_module("block_" + std::to_string(i), std::make_shared<Block>()));
      list.push_back({"block_" + std::to_string(i), "Block", blocks.back().get()});
    }
  }
  const std::vector<Unit>& units() const override { return list; }
  at::Tensor loss(const at::Tensor& x, const std::vector<std::size_t>& order, UnitRunner& runner,
                  bool with_bias = true) {
    at::Tensor y = at::mm(x, first);
    for (const std::size_t i : order) {
      const Block* block = blocks[i].get();
      y = runner.run(list[i], y, [block, with_bias](const at::Tensor& z) { return block->forward(z, with_bias); });
    }
    return at::mm(y, first).sum();
  }
  at::Tensor first;
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<Unit> list;
};

inline at::Tensor input_of(int rank) {
  return at::arange(15, at::kFloat).view({3, 5}).mul_(0.1).add_(rank);
}

}  // namespace tessera
