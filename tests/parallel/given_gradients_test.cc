// Nodes that give their parameters' gradients to the engine (kernels/gradient_room.h), as a block of BLOOM does on a
// GPU: in every row the gradients are those of plain autograd.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <atomic>

#include "core/error.h"
#include "kernels/gradient_room.h"
#include "model/run_modes.h"
#include "parallel/engine_options.h"

namespace tessera {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct HeldByNode : torch::CustomClassHolder {
  at::Tensor x, weight, other;
};

std::atomic<int> num_gifts{0};

// x weight + 2 x other; the weights have no edges.
class GivingProduct : public torch::autograd::Function<GivingProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::array<at::Tensor, 2>& weights) {
    auto held = c10::make_intrusive<HeldByNode>();
    held->x = x;
    held->weight = weights[0];
    held->other = weights[1];
    context->saved_data["held"] = c10::IValue::make_capsule(std::move(held));
    return x.mm(weights[0]) + 2 * x.mm(weights[1]);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["held"].toCapsule();
    const auto& held = static_cast<const HeldByNode&>(*capsule);
    const at::Tensor of_weight = held.x.t().mm(grads[0]);
    const std::array<at::Tensor, 2> parameters = {held.weight, held.other}, gradients = {of_weight, 2 * of_weight};
    kernels::give_gradients(parameters, gradients);
    ++num_gifts;
    return {grads[0].mm(held.weight.t()) + 2 * grads[0].mm(held.other.t()), {}};
  }
};

// Blocks with two matrices whose gradients are given where somebody collects them, and a bias that goes through
// autograd.
struct GivingModel : UnitModel {
  struct Block : torch::nn::Module {
    Block() {
      weight = register_parameter("weight", at::eye(5) + 0.1 * at::ones({5, 5}));
      other = register_parameter("other", 0.05 * at::ones({5, 5}));
      bias = register_parameter("bias", 0.1 * at::ones({5}));
    }
    at::Tensor forward(const at::Tensor& x, int num_nodes) const {
      at::Tensor y = x;
      for (int i = 0; i < num_nodes; ++i) {
        const bool gives = y.requires_grad() && kernels::is_collected(weight);
        y = gives ? GivingProduct::apply(y, std::array{weight, other}) : y.mm(weight) + 2 * y.mm(other);
        y = y.tanh();
      }
      return y + bias;
    }
    at::Tensor weight, other, bias;
  };
  GivingModel() : UnitModel("GivingModel") {
    first = register_parameter("first", at::eye(5) * 0.9);
    for (const char* name : {"a", "b", "c"}) {
      blocks.push_back(register_module(name, std::make_shared<Block>()));
      list.push_back({name, "Block", blocks.back().get()});
    }
  }
  const std::vector<Unit>& units() const override { return list; }
  at::Tensor loss(const at::Tensor& x, int num_nodes, UnitRunner& runner) {
    at::Tensor y = x.mm(first);
    for (std::size_t i = 0; i < list.size(); ++i) {
      y = runner.run(list[i], y,
                     [block = blocks[i], num_nodes](const at::Tensor& z) { return block->forward(z, num_nodes); });
    }
    return y.mm(first).sum();
  }
  at::Tensor first;
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<Unit> list;
};

at::Tensor given_input(int rank, int micro_step) {
  return at::arange(15, at::kFloat).view({3, 5}).mul_(0.1).add_(rank + 0.3 * micro_step);
}

struct GivenCase {
  int num_ranks = 1, num_nodes = 1, num_micro_steps = 1;  // nodes: of each block
  bool recomputes = false;
  int ranks_per_node = 0;  // 0: all
};

void expect_plain_gradients(const std::string& strategy, const GivenCase& with) {
  SCOPED_TRACE(strategy + " on " + std::to_string(with.num_ranks) + " ranks, nodes " + std::to_string(with.num_nodes) +
               ", micro-steps " + std::to_string(with.num_micro_steps) + (with.recomputes ? ", recomputed" : ""));
  GivingModel plain_model;
  UnitRunner plain;
  for (int rank = 0; rank < with.num_ranks; ++rank) {
    for (int i = 0; i < with.num_micro_steps; ++i) {
      plain_model.loss(given_input(rank, i), with.num_nodes, plain).backward();
    }
  }
  num_gifts = 0;
  WorldOptions on_nodes;
  on_nodes.ranks_per_node = with.ranks_per_node;
  run_thread_ranks(with.num_ranks, on_nodes, [&](World& world) {
    GivingModel model;
    EngineOptions options = options_of(strategy);
    options.types.accumulates = with.num_micro_steps > 1;
    Engine engine(world, model, model.units(), options);
    CheckpointRunner recomputing(engine);
    for (int i = 0; i < with.num_micro_steps; ++i) {
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        UnitRunner& runner = with.recomputes ? static_cast<UnitRunner&>(recomputing) : engine;
        loss = model.loss(given_input(world.rank(), i), with.num_nodes, runner);
      }
      engine.backward(loss, i + 1 == with.num_micro_steps);
    }
    engine.wait_for_gradients();
    const auto plain_parameters = plain_model.named_parameters();
    for (const FlatUnit& unit : engine.units()) {
      for (const FlatSlot& slot : unit.layout().slots()) {
        const FlatRange own = intersect(unit.updated(), {slot.offset, slot.offset + slot.numel});
        if (own.empty()) continue;
        const at::Tensor found = unit.gradient().narrow(0, own.begin - unit.updated().begin, own.numel());
        const at::Tensor expected =
            plain_parameters[slot.name].grad().flatten().narrow(0, own.begin - slot.offset, own.numel());
        EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-5)) << slot.name;
      }
    }
  });
  EXPECT_EQ(num_gifts, 3 * with.num_nodes * with.num_micro_steps * with.num_ranks);
}

TEST(GivenGradients, AreThoseOfPlainAutogradInEveryRow) {
  for (const std::string& strategy : strategy_names()) {
    for (const int num_ranks : {1, 2, 3}) {
      if (strategy == "single" && num_ranks > 1) continue;
      for (const int num_micro_steps : {1, 3}) {
        expect_plain_gradients(strategy, {.num_ranks = num_ranks, .num_micro_steps = num_micro_steps});
      }
    }
  }
}

TEST(GivenGradients, AreThoseOfPlainAutogradOnSeveralNodes) {
  for (const char* strategy : {"hybrid_shard", "hybrid_shard_zero2", "zero3_hpz", "full_shard"}) {
    for (const int num_micro_steps : {1, 3}) {
      expect_plain_gradients(strategy, {.num_ranks = 4, .num_micro_steps = num_micro_steps, .ranks_per_node = 2});
    }
  }
}

TEST(GivenGradients, SeveralNodesOfAUnitMayGiveForOneParameter) {
  for (const char* strategy : {"ddp", "zero2", "full_shard"}) {
    for (const int num_micro_steps : {1, 3}) {
      expect_plain_gradients(strategy, {.num_ranks = 2, .num_nodes = 2, .num_micro_steps = num_micro_steps});
    }
  }
}

TEST(GivenGradients, MayComeFromARecomputedUnit) {
  for (const char* strategy : {"single", "ddp", "full_shard"}) {
    expect_plain_gradients(strategy, {.num_ranks = strategy == std::string("single") ? 1 : 2, .recomputes = true});
  }
}

TEST(GivenGradients, AreNotTakenAfterTheEngineHasGone) {
  GivingModel model;
  run_thread_ranks(1, {}, [&](World& world) {
    const Engine engine(world, model, model.units(), options_of("single"));
    EXPECT_TRUE(kernels::is_collected(model.first));
  });
  EXPECT_FALSE(kernels::is_collected(model.first));
  EXPECT_FALSE(kernels::gradient_room(model.first).defined());
}

}  // namespace
}  // namespace tessera
