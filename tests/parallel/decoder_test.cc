// The text models under the engine: every strategy trains them to the same bits, with and without activation
// checkpointing, and leaves the gradients that the model has without an engine.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/generation.h"
#include "model/run_modes.h"
#include "parallel/sharded_optimizer.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

constexpr int kDecoderSteps = 5;
constexpr double kDecoderDropout = 0.1;

struct DecoderRun {
  std::string family = "bloom";
  at::ScalarType type = at::kFloat;
  std::string strategy = "ddp";
  int num_ranks = 2;
  int ranks_per_node = 0;
  bool checkpointed = false;
};

std::shared_ptr<LanguageModel> decoder_of(const DecoderRun& run) {
  if (run.family == "bloom") return small_bloom(kDecoderDropout);
  return run.family == "gpt" ? small_gpt(kDecoderDropout) : small_decoder(run.family, kDecoderDropout);
}

EngineOptions decoder_options(const DecoderRun& run) {
  EngineOptions options;
  options.spread.strategy = run.strategy;
  options.types = {run.type, run.type, false};
  return options;
}

// Every rank and step has sequences of other lengths.
PackedBatch decoder_batch(int step, int rank) {
  return counted_batch({7 + rank, 5 + step, 2});
}

kernels::LossSum decoder_forward(LanguageModel& model, const PackedBatch& batch, Engine& engine, bool checkpointed) {
  const auto pass = engine.forward();
  CheckpointRunner recomputing(engine);
  return model.loss(batch, checkpointed ? recomputing : static_cast<UnitRunner&>(engine));
}

std::vector<double> decoder_losses(World& world, const DecoderRun& run) {
  const auto model = decoder_of(run);
  initialise(*model, 1 + static_cast<std::uint64_t>(world.rank()));  // rank 0's values reach the others
  Engine engine(world, *model, model->units(), decoder_options(run));
  ShardedOptimizer optimizer(engine, choose_optimizer("adamw"));
  std::vector<double> losses;
  for (int step = 0; step < kDecoderSteps; ++step) {
    model->set_dropout_seed(mix_seed(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(world.rank())));
    const kernels::LossSum loss = decoder_forward(*model, decoder_batch(step, world.rank()), engine, run.checkpointed);
    engine.backward(loss.sum);
    const at::Tensor sums = at::stack({loss.sum.detach(), at::scalar_tensor(loss.num_counted, at::kFloat)});
    world.all().all_reduce(sums)->wait();
    const double divisor = sums[1].item<double>();
    const UpdateResult update = optimizer.update({.learning_rate = 1e-2, .divisor = divisor, .max_norm = 1});
    losses.push_back(sums[0].item<double>() / divisor);
    losses.push_back(update.gradient_norm);
  }
  return losses;
}

// Of rank 0: each step's loss over all ranks, and the norm of its gradient.
std::vector<double> decoder_losses(const DecoderRun& run) {
  std::vector<double> losses;
  WorldOptions options;
  options.ranks_per_node = run.ranks_per_node;
  options.comm_timeout = std::chrono::seconds(60);
  run_thread_ranks(run.num_ranks, options, [&](World& world) {
    std::vector<double> own = decoder_losses(world, run);
    if (world.rank() == 0) losses = std::move(own);
  });
  return losses;
}

class TextModelUnderEngine : public testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  DecoderRun training(const std::string& strategy, int num_ranks = 2) const {
    return {.family = std::get<0>(GetParam()),
            .type = std::get<1>(GetParam()),
            .strategy = strategy,
            .num_ranks = num_ranks};
  }
};

TEST_P(TextModelUnderEngine, EveryStrategyGivesTheSameBitsWithAndWithoutCheckpointing) {
  const std::vector<double> expected = decoder_losses(training("ddp"));
  EXPECT_LT(expected[2 * kDecoderSteps - 2], expected[0]) << "it learns";
  for (const std::string strategy : {"ddp", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op"}) {
    for (const bool checkpointed : {false, true}) {
      DecoderRun run = training(strategy);
      run.checkpointed = checkpointed;
      EXPECT_EQ(decoder_losses(run), expected) << strategy << (checkpointed ? ", checkpointed" : "");
    }
  }
}

TEST_P(TextModelUnderEngine, HybridGivesTheBitsOfFlatRanks) {
  for (const int ranks_per_node : {1, 2}) {
    DecoderRun flat = training("ddp"), hybrid = training("hybrid_shard");
    flat.ranks_per_node = hybrid.ranks_per_node = ranks_per_node;
    const std::vector<double> expected = decoder_losses(flat);
    EXPECT_EQ(decoder_losses(hybrid), expected) << ranks_per_node << " ranks a node";
    hybrid.checkpointed = true;
    EXPECT_EQ(decoder_losses(hybrid), expected) << ranks_per_node << " ranks a node, checkpointed";
  }
}

TEST_P(TextModelUnderEngine, OneRankGivesTheSameBitsInEveryRow) {
  const std::vector<double> expected = decoder_losses(training("single", 1));
  for (const std::string strategy : {"ddp", "zero2", "full_shard", "hybrid_shard"}) {
    DecoderRun run = training(strategy, 1);
    EXPECT_EQ(decoder_losses(run), expected) << strategy;
    run.checkpointed = true;
    EXPECT_EQ(decoder_losses(run), expected) << strategy << ", checkpointed";
  }
}

// The engine takes each gradient as soon as it is there; the tied table's must then be whole: the head's part and the
// embedding's.
TEST_P(TextModelUnderEngine, LeavesTheGradientsOfTheModelAlone) {
  for (const bool checkpointed : {false, true}) {
    DecoderRun run = training("single", 1);
    const auto alone = decoder_of(run), spread = decoder_of(run);
    alone->to(run.type);
    UnitRunner plain;
    alone->set_dropout_seed(3);
    spread->set_dropout_seed(3);
    alone->loss(decoder_batch(0, 0), plain).sum.backward();
    run_thread_ranks(1, {}, [&](World& world) {
      Engine engine(world, *spread, spread->units(), decoder_options(run));
      engine.backward(decoder_forward(*spread, decoder_batch(0, 0), engine, checkpointed).sum);
      engine.wait_for_gradients();
      std::size_t num_compared = 0;
      for (const FlatUnit& unit : engine.units()) {
        for (const FlatSlot& slot : unit.layout().slots()) {
          const at::Tensor expected = alone->named_parameters()[slot.name].grad();
          const at::Tensor found = unit.gradient().narrow(0, slot.offset, slot.numel).view(slot.shape);
          EXPECT_TRUE(at::equal(found, expected)) << slot.name << (checkpointed ? ", checkpointed" : "");
          ++num_compared;
        }
      }
      EXPECT_EQ(num_compared, alone->parameters().size());
    });
  }
}

// Nothing stays gathered after a pass without gradients, and checkpointing changes nothing in it.
TEST_P(TextModelUnderEngine, EvaluatesWithoutGradients) {
  const DecoderRun run = training("full_shard");
  run_thread_ranks(run.num_ranks, {}, [&](World& world) {
    const auto model = decoder_of(run);
    Engine engine(world, *model, model->units(), decoder_options(run));
    model->eval();
    const at::NoGradGuard no_grad;
    const double first = decoder_forward(*model, decoder_batch(0, 0), engine, false).sum.item<double>();
    EXPECT_EQ(decoder_forward(*model, decoder_batch(0, 0), engine, true).sum.item<double>(), first);
    for (const FlatUnit& unit : engine.units()) EXPECT_FALSE(unit.is_whole()) << unit.name();
  });
}

TEST_P(TextModelUnderEngine, GeneratesWhatTheModelAloneGenerates) {
  const DecoderRun run = training("full_shard");
  const std::vector<TokenIds> prompts = {{1, 2, 3}, {4}, {5, 6, 7, 8}};
  const auto alone = decoder_of(run);
  alone->to(run.type);
  UnitRunner plain;
  const std::vector<TokenIds> expected = generate(*alone, prompts, {}, plain);
  run_thread_ranks(run.num_ranks, {}, [&](World& world) {
    const auto model = decoder_of(run);
    Engine engine(world, *model, model->units(), decoder_options(run));
    const at::NoGradGuard no_grad;
    const auto pass = engine.forward();
    EXPECT_EQ(generate(*model, prompts, {}, engine), expected) << "rank " << world.rank();
  });
}

std::vector<std::tuple<std::string, at::ScalarType>> families() {
  std::vector<std::tuple<std::string, at::ScalarType>> cases{{"bloom", at::kFloat}, {"gpt", at::kFloat}};
  for (const std::string& family : decoder_families()) cases.emplace_back(family, at::kFloat);
  for (const char* family : {"bloom", "gpt", "llama", "gemma3_text"}) cases.emplace_back(family, at::kBFloat16);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, TextModelUnderEngine, testing::ValuesIn(families()), [](const auto& tested) {
  return std::get<0>(tested.param) + "_" + c10::toString(std::get<1>(tested.param));
});

}  // namespace
}  // namespace tessera
