#include "parallel/small_model.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

namespace tessera {

struct SmallModel::Block : torch::nn::Module {
  Block(const at::Generator& generator, bool has_frozen) : torch::nn::Module("Block") {
    const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, generator).mul_(0.1); };
    in = register_parameter("in", random({kInner, kWidth}));
    in_bias = register_parameter("in_bias", random({kInner}));
    out = register_parameter("out", random({kWidth, kInner}));
    frozen = register_parameter("frozen", random({kWidth}), !has_frozen);
  }
  at::Tensor forward(const at::Tensor& x) const {
    return x + at::linear(at::relu(at::linear(x, in, in_bias)), out) + frozen;
  }
  at::Tensor in, in_bias, out, frozen;
};

SmallModel::SmallModel(std::int64_t num_blocks, std::uint64_t seed) : UnitModel("SmallModel") {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  embedding_ = register_parameter("embedding", at::randn({kVocabulary, kWidth}, generator).mul_(0.3));
  scale_ = register_parameter("scale", at::ones({}));
  unused_ = register_parameter("unused", at::ones({7}));
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    blocks_.push_back(register_module(fmt::format("block_{}", i), std::make_shared<Block>(generator, i == 1)));
    units_.push_back({fmt::format("block_{}", i), "Block", blocks_.back().get()});
  }
}

at::Tensor SmallModel::loss(const at::Tensor& ids, const at::Tensor& targets, UnitRunner& runner) {
  at::Tensor x = at::embedding(embedding_, ids);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    x = runner.run(units_[i], x, [block = blocks_[i].get()](const at::Tensor& input) { return block->forward(input); });
  }
  const at::Tensor logits = at::linear(x * scale_, embedding_).to(at::kFloat);
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
}

}  // namespace tessera
