// Trains a small convolutional network of your own, with any strategy and any number of ranks.
//
//   own_model [STRATEGY [WAY [SAVE_TO [LOAD_FROM]]]]          one process
//   tessera launch --nproc_per_node 2 own_model full_shard    two ranks
//
// STRATEGY: ddp, zero1, full_shard, ... WAY: how the model is split into units; each way has its own model:
//   blocks      forward runs each block through a runner (the default)
//   sequential  an unchanged torch::nn::Sequential
//   whole       one unit, an unchanged model
// SAVE_TO, LOAD_FROM: a .safetensors file with the weights; empty means none.
#include <tessera/checkpoint.h>
#include <tessera/optimizer.h>
#include <tessera/shard.h>
#include <tessera/spread.h>
// Instead of <torch/torch.h>, which takes three times as long to compile.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

constexpr int kNumSteps = 12, kNumClasses = 4, kChannels = 16, kSide = 12;

// The images of a step, the same on every rank: noise with one bright corner, which is the class.
struct Batch {
  at::Tensor images, labels;  // [B, 1, kSide, kSide], [B]
};

Batch make_batch(int step) {
  constexpr std::int64_t kNumPictures = 24;
  at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step));
  Batch batch{at::rand({kNumPictures, 1, kSide, kSide}, generator),
              at::randint(kNumClasses, {kNumPictures}, generator)};
  for (std::int64_t i = 0; i < kNumPictures; ++i) {
    const auto label = batch.labels[i].item<std::int64_t>();
    const std::int64_t top = label / 2 * (kSide / 2), left = label % 2 * (kSide / 2);
    batch.images[i][0].narrow(0, top, kSide / 2).narrow(1, left, kSide / 2) += 0.5;
  }
  return batch;
}

// Each rank trains on its own part.
Batch own_part(const Batch& batch, const tessera::World& world) {
  const auto part = [&](const at::Tensor& t) { return t.chunk(world.size())[world.rank()].to(world.device()); };
  return {part(batch.images), part(batch.labels)};
}

// --- a model whose forward runs its blocks through a runner ---

struct BlockImpl : torch::nn::Module {
  BlockImpl()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(kChannels, kChannels, 3).padding(1)))) {
  }
  at::Tensor forward(const at::Tensor& x) { return x + conv(x).relu(); }
  torch::nn::Conv2d conv;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    for (int i = 0; i < 3; ++i) blocks.push_back(register_module("block_" + std::to_string(i), Block()));
  }
  at::Tensor forward(const at::Tensor& images, tessera::UnitRunner& runner) {
    at::Tensor x = stem(images).relu();
    for (Block& block : blocks) x = runner.run(block, x);  // instead of block(x)
    return head(x.mean(3).flatten(1));
  }
  torch::nn::Conv2d stem = register_module("stem", torch::nn::Conv2d(1, kChannels, 3));
  std::vector<Block> blocks;
  torch::nn::Linear head = register_module("head", torch::nn::Linear(kChannels*(kSide - 2), kNumClasses));
};
TORCH_MODULE(Net);

// --- models without any Tessera code ---

struct PlainNetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& images) { return head(second(first(images).relu()).relu().mean(3).flatten(1)); }
  torch::nn::Conv2d first = register_module("first", torch::nn::Conv2d(1, kChannels, 3));
  torch::nn::Conv2d second = register_module("second", torch::nn::Conv2d(kChannels, kChannels, 3));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(kChannels*(kSide - 4), kNumClasses));
};
TORCH_MODULE(PlainNet);

struct FlattenImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x.flatten(1); }
};
TORCH_MODULE(Flatten);

torch::nn::Sequential make_sequential() {
  return torch::nn::Sequential(torch::nn::Conv2d(1, kChannels, 3), Block(), Block(), Flatten(),
                               torch::nn::Linear(kChannels * (kSide - 2) * (kSide - 2), kNumClasses));
}

// --- the three ways ---

struct Arguments {
  std::string strategy = "ddp", way = "blocks", save_to, load_from;
};

at::Tensor loss_of(const at::Tensor& logits, const Batch& batch) {
  return at::cross_entropy_loss(logits, batch.labels);
}

void print(const tessera::World& world, int step, double loss) {
  if (world.rank() == 0) std::printf("step %d loss %.9g\n", step, loss);
}

// [docs: begin]
void train_blocks(tessera::World& world, const Arguments& arguments) {
  Net model;
  tessera::Sharded sharded(world, *model,
                           {.spread = {.strategy = arguments.strategy}, .units = tessera::units_of<Block>(*model)});
  tessera::Optimizer optimizer(sharded, tessera::AdamW{.learning_rate = 3e-3});
  if (!arguments.load_from.empty()) tessera::load_weights(sharded, arguments.load_from);
  for (int step = 0; step < kNumSteps; ++step) {
    const Batch batch = own_part(make_batch(step), world);
    const at::Tensor loss = sharded.forward([&] { return loss_of(model->forward(batch.images, sharded), batch); });
    sharded.backward(loss);
    optimizer.step({.max_norm = 1});
    print(world, step, tessera::mean_over_ranks(world, loss));
  }
  if (!arguments.save_to.empty()) tessera::save_weights(sharded, arguments.save_to);
}
// [docs: end]

// The same loop for the other two, which differ only in the line that computes the loss.
template <typename LossOfBatch>
void train(tessera::Sharded& sharded, const Arguments& arguments, const LossOfBatch& loss_of_batch) {
  tessera::World& world = sharded.world();
  tessera::Optimizer optimizer(sharded, tessera::AdamW{.learning_rate = 3e-3});
  if (!arguments.load_from.empty()) tessera::load_weights(sharded, arguments.load_from);
  for (int step = 0; step < kNumSteps; ++step) {
    const at::Tensor loss = loss_of_batch(own_part(make_batch(step), world));
    sharded.backward(loss);
    optimizer.step({.max_norm = 1});
    print(world, step, tessera::mean_over_ranks(world, loss));
  }
  if (!arguments.save_to.empty()) tessera::save_weights(sharded, arguments.save_to);
}

void train_sequential(tessera::World& world, const Arguments& arguments) {
  torch::nn::Sequential model = make_sequential();
  tessera::Sharded sharded(world, *model, {.spread = {.strategy = arguments.strategy}});
  train(sharded, arguments, [&](const Batch& batch) { return loss_of(sharded.forward(batch.images), batch); });
}

void train_whole(tessera::World& world, const Arguments& arguments) {
  PlainNet model;
  tessera::Sharded sharded(world, *model, {.spread = {.strategy = arguments.strategy}});
  train(sharded, arguments, [&](const Batch& batch) {
    return sharded.forward([&] { return loss_of(model->forward(batch.images), batch); });
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1] == std::string("--help")) {
    std::printf("usage: own_model [STRATEGY [blocks|sequential|whole [SAVE_TO [LOAD_FROM]]]]\nstrategies:");
    for (const std::string& name : tessera::strategy_names()) std::printf(" %s", name.c_str());
    std::printf("\n");
    return 0;
  }
  Arguments arguments;
  if (argc > 1) arguments.strategy = argv[1];
  if (argc > 2) arguments.way = argv[2];
  if (argc > 3) arguments.save_to = argv[3];
  if (argc > 4) arguments.load_from = argv[4];
  return tessera::run_rank({}, [&](tessera::World& world) {
    at::manual_seed(1);
    if (arguments.way == "blocks") {
      train_blocks(world, arguments);
    } else if (arguments.way == "sequential") {
      train_sequential(world, arguments);
    } else if (arguments.way == "whole") {
      train_whole(world, arguments);
    } else {
      throw std::runtime_error("way '" + arguments.way + "': expected blocks, sequential or whole");
    }
    return 0;
  });
}
