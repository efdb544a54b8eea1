// Every strategy gives the same losses: bit for bit at the same number of ranks and accumulation mode.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"

namespace tessera {
namespace {

constexpr int kNumSteps = 20;
constexpr std::int64_t kGlobalBatch = 24;  // tokens a micro-step, divisible by 1, 2, 3 and 4 ranks

template <typename Options>
OptimizerOptions with_decay(Options options) {
  options.weight_decay = 0.01;
  return options;
}

struct Training {
  std::string strategy = "ddp";
  int num_ranks = 1;
  int ranks_per_node = 0;
  int num_micro_steps = 1;
  at::ScalarType type = at::kFloat;
  double max_norm = 1.0;
  OptimizerOptions optimizer = with_decay(kernels::AdamW{});
  bool forward_prefetch = true;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
};

struct Result {
  std::vector<double> losses;  // by step, of all ranks
  std::vector<double> norms;
  std::vector<at::Tensor> parameters;  // of rank 0, whole, at the end
};

// This rank's tokens of one micro-step.
std::pair<at::Tensor, at::Tensor> batch_of(int step, int micro_step, const World& world) {
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(1000 * step + micro_step));
  const at::Tensor ids = at::randint(SmallModel::kVocabulary, {2, kGlobalBatch}, generator, at::kLong);
  const std::int64_t own = kGlobalBatch / world.size();
  return {ids[0].narrow(0, world.rank() * own, own), ids[1].narrow(0, world.rank() * own, own)};
}

EngineOptions options_of(const Training& run) {
  EngineOptions options;
  options.placement = placement_of(run.strategy);
  options.types = {run.type, run.type, run.num_micro_steps > 1};
  options.forward_prefetch = run.forward_prefetch;
  options.backward_prefetch = run.backward_prefetch;
  options.is_exempt_from_decay = [](const std::string& name) { return name.find("bias") != std::string::npos; };
  return options;
}

void train(World& world, const Training& run, Result& result) {
  SmallModel model(3, 1 + static_cast<std::uint64_t>(world.rank()));  // rank 0's values reach the others
  Engine engine(world, model, model.units(), options_of(run));
  ShardedOptimizer optimizer(engine, run.optimizer);
  for (int step = 0; step < kNumSteps; ++step) {
    at::Tensor loss_sum = at::zeros({1});
    for (int micro_step = 0; micro_step < run.num_micro_steps; ++micro_step) {
      const auto [ids, targets] = batch_of(step, micro_step, world);
      at::Tensor loss;
      {
        const auto pass = engine.forward();
        loss = model.loss(ids, targets, engine);
      }
      engine.backward(loss, micro_step + 1 == run.num_micro_steps);
      loss_sum += loss.detach();
    }
    const double divisor = static_cast<double>(kGlobalBatch * run.num_micro_steps);
    const UpdateResult update = optimizer.update({.learning_rate = 3e-3, .divisor = divisor, .max_norm = run.max_norm});
    world.all().all_reduce(loss_sum)->wait();
    if (world.rank() == 0) {
      result.losses.push_back(loss_sum.item<double>() / divisor);
      result.norms.push_back(update.gradient_norm);
    }
  }
  for (FlatUnit& unit : engine.units()) unit.wait_gather();
  for (const at::Tensor& parameter : model.parameters()) {
    at::Tensor whole = parameter.detach().to(at::kFloat).clone(), of_first = whole.clone();
    world.all().broadcast(of_first, 0)->wait();
    EXPECT_TRUE(at::equal(whole, of_first)) << "rank " << world.rank() << " differs from rank 0";
    if (world.rank() == 0) result.parameters.push_back(whole);
  }
}

Result result_of(const Training& run) {
  Result result;
  WorldOptions options;
  options.ranks_per_node = run.ranks_per_node;
  options.comm_timeout = std::chrono::seconds(60);
  run_thread_ranks(run.num_ranks, options, [&](World& world) { train(world, run, result); });
  return result;
}

void expect_same_bits(const Result& a, const Result& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.norms, b.norms) << what;
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(a.parameters[i], b.parameters[i])) << what;
}

void expect_falling(const Result& result) {
  EXPECT_LT(result.losses.back(), result.losses.front());
  for (double loss : result.losses) EXPECT_TRUE(std::isfinite(loss));
}

class Parity : public testing::TestWithParam<std::tuple<int, at::ScalarType>> {};

TEST_P(Parity, AllStrategiesGiveTheSameBits) {
  const auto [num_ranks, type] = GetParam();
  const Result ddp = result_of({.strategy = "ddp", .num_ranks = num_ranks, .type = type});
  expect_falling(ddp);
  for (const std::string strategy : {"zero0", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op", "no_shard"}) {
    expect_same_bits(result_of({.strategy = strategy, .num_ranks = num_ranks, .type = type}), ddp, strategy);
  }
}

TEST_P(Parity, AccumulationModesAgreeWithinThemselves) {
  const auto [num_ranks, type] = GetParam();
  const auto run = [&, n = num_ranks, t = type](const char* strategy) {
    return result_of({.strategy = strategy, .num_ranks = n, .num_micro_steps = 4, .type = t});
  };
  const Result whole = run("ddp"), split = run("zero2");
  expect_falling(whole);
  expect_same_bits(run("zero1"), whole, "zero1");
  for (const char* strategy : {"zero3", "shard_grad_op"}) expect_same_bits(run(strategy), split, strategy);
  for (std::size_t i = 0; type == at::kFloat && i < whole.losses.size(); ++i) {
    EXPECT_NEAR(split.losses[i], whole.losses[i], 1e-6 * whole.losses[i]) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Parity,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(at::kFloat, at::kBFloat16)));

TEST(ParityAcrossRanks, TheNumberOfRanksChangesOnlyRounding) {
  const Result one = result_of({.strategy = "single"});
  for (const int num_ranks : {2, 3, 4}) {
    const Result many = result_of({.strategy = "full_shard", .num_ranks = num_ranks});
    for (int i = 0; i < kNumSteps; ++i) {
      const auto k = static_cast<std::size_t>(i);
      EXPECT_NEAR(many.losses[k], one.losses[k], 1e-5 * one.losses[k]) << num_ranks << " ranks, step " << i;
    }
  }
}

TEST(ParityHybrid, TwoNodesOfTwoGiveTheBitsOfFourFlatRanks) {
  const Training flat{.strategy = "ddp", .num_ranks = 4, .ranks_per_node = 2};
  Training hybrid = flat;
  hybrid.strategy = "hybrid_shard";
  expect_same_bits(result_of(hybrid), result_of(flat), "hybrid_shard");
  Training alone = hybrid, flat_alone = flat;  // nodes of one rank: nothing to split, everything to add across
  alone.ranks_per_node = flat_alone.ranks_per_node = 1;
  expect_same_bits(result_of(alone), result_of(flat_alone), "hybrid_shard on nodes of one rank");
}

TEST(ParityOptimizers, ShardsGetWhatTheWholeGets) {
  kernels::AdamW adam;
  adam.decoupled = false;
  kernels::Sgd plain, momentum;
  momentum.momentum = 0.9;
  momentum.nesterov = true;
  for (const OptimizerOptions& optimizer : {with_decay(adam), with_decay(plain), with_decay(momentum)}) {
    Training training{.strategy = "ddp", .num_ranks = 3, .optimizer = optimizer};
    const Result ddp = result_of(training);
    expect_falling(ddp);
    for (const char* strategy : {"zero1", "full_shard"}) {
      training.strategy = strategy;
      expect_same_bits(result_of(training), ddp, strategy);
    }
  }
}

TEST(ParityPrefetch, ChangesNothingButTime) {
  const Training with{.strategy = "full_shard", .num_ranks = 3};
  const Result expected = result_of(with);
  for (const auto backward : {BackwardPrefetch::kNone, BackwardPrefetch::kPost}) {
    Training without = with;
    without.forward_prefetch = false;
    without.backward_prefetch = backward;
    expect_same_bits(result_of(without), expected, "prefetch");
  }
}

}  // namespace
}  // namespace tessera
