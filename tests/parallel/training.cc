#include "parallel/training.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

EngineOptions options_of(const Training& how) {
  EngineOptions options;
  options.spread = how.row.spread();
  options.types = {how.type, how.type, how.num_micro_steps > 1};
  options.spread.forward_prefetch = how.forward_prefetch;
  options.spread.backward_prefetch = how.backward_prefetch;
  options.host_memory_is_separate = true;  // so that offloaded state really moves
  options.is_exempt_from_decay = how.is_exempt_from_decay;
  return options;
}

// The parts of all ranks that split it, without the padding after the last parameter, which depends on their number.
at::Tensor whole_master(const Engine& engine, const FlatUnit& unit) {
  at::Tensor whole = unit.master();
  if (unit.is_part() && engine.groups().shard != nullptr) {
    const at::Tensor own = unit.master().contiguous();
    whole = at::empty({own.numel() * engine.groups().num_shards()}, own.options());
    engine.groups().shard->all_gather(whole, own)->wait();
  }
  return whole.narrow(0, 0, unit.layout().numel()).clone();
}

void expect_same_on_all_ranks(World& world, const at::Tensor& tensor, const std::string& name) {
  const at::Tensor of_first = tensor.contiguous().clone();
  world.all().broadcast(of_first, 0)->wait();
  EXPECT_TRUE(at::equal(tensor, of_first)) << name << ": rank " << world.rank() << " differs from rank 0";
}

void take_state(World& world, Engine& engine, TrainedJob& job, Trained& result) {
  const at::NoGradGuard no_gradients;
  for (FlatUnit& unit : engine.units()) {
    unit.finish_update();
    unit.wait_gather();
    if (unit.layout().numel() == 0) continue;
    result.masters.push_back(whole_master(engine, unit));
    expect_same_on_all_ranks(world, result.masters.back(), unit.name());
  }
  for (const auto& item : job.model().named_parameters()) {
    result.computed.push_back(item.value().detach().clone());
    expect_same_on_all_ranks(world, result.computed.back(), item.key());
  }
  engine.sync_buffers();
  for (const auto& item : job.model().named_buffers()) {
    result.buffers.push_back(item.value().clone());
    expect_same_on_all_ranks(world, result.buffers.back(), item.key());
  }
}

void expect_equal(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at::equal(found[i], expected[i])) << what << " " << i;
}

}  // namespace

std::string Row::name() const {
  return strategy + (offload_optimizer ? " offload_optimizer" : "") + (offload_parameters ? " offload_param" : "") +
         (delayed_update ? " delayed_update" : "") +
         (units_on_device > 0 ? " with " + std::to_string(units_on_device) + " on the device" : "");
}

Trained train(World& world, TrainedJob& job, const Training& how) {
  Engine engine(world, job.model(), job.model().units(), options_of(how));
  ShardedOptimizer optimizer(engine, how.optimizer, how.host_updates);
  Trained result;
  for (int step = 0; step < how.num_steps; ++step) {
    at::Tensor loss_sum = at::zeros({1}), count = at::zeros({1});
    const double learning_rate = how.learning_rate_of ? how.learning_rate_of(step) : how.learning_rate;
    UpdateArguments arguments{.learning_rate = learning_rate, .max_norm = how.max_norm};
    for (int micro_step = 0; micro_step < how.num_micro_steps; ++micro_step) {
      const bool is_last = micro_step + 1 == how.num_micro_steps;
      TrainedJob::Loss loss;
      {
        const auto pass = engine.forward();
        loss = job.loss(step, micro_step, engine);
      }
      loss_sum += loss.sum.detach();
      count += loss.num_counted;
      if (is_last) {
        world.all().all_reduce(count)->wait();
        arguments.divisor = count.item<double>();
        if (how.update_during_backward) optimizer.update_during_backward(arguments);
      }
      engine.backward(loss.sum, is_last);
    }
    world.all().all_reduce(loss_sum)->wait();
    const UpdateResult update = optimizer.update(arguments);
    result.losses.push_back(loss_sum.item<double>() / arguments.divisor);
    result.norms.push_back(update.gradient_norm);
  }
  take_state(world, engine, job, result);
  return result;
}

Trained train_on_threads(const ThreadRanks& ranks, const MakeJob& make_job, const Training& how) {
  Trained result;
  WorldOptions options;
  options.ranks_per_node = ranks.ranks_per_node;
  options.comm_timeout = std::chrono::seconds(60);
  run_thread_ranks(ranks.num_ranks, options, [&](World& world) {
    const std::unique_ptr<TrainedJob> job = make_job(world.rank(), world.size());
    Trained own = train(world, *job, how);
    if (world.rank() == 0) result = std::move(own);
  });
  return result;
}

void expect_same_bits(const Trained& found, const Trained& expected, const std::string& what) {
  EXPECT_EQ(found.losses, expected.losses) << what;
  EXPECT_EQ(found.norms, expected.norms) << what;
  expect_equal(found.masters, expected.masters, what + ", master of unit");
  expect_equal(found.computed, expected.computed, what + ", parameter");
  expect_equal(found.buffers, expected.buffers, what + ", buffer");
}

void expect_close(const std::vector<double>& found, const std::vector<double>& expected, double relative,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], relative * std::abs(expected[i])) << what << ", update " << i;
  }
}

void expect_close(const Trained& found, const Trained& expected, double relative, const std::string& what) {
  expect_close(found.losses, expected.losses, relative, what + ": losses");
  expect_close(found.norms, expected.norms, relative, what + ": norms");
}

void expect_learnt(const Trained& result, const std::string& what) {
  for (double loss : result.losses) EXPECT_TRUE(std::isfinite(loss)) << what;
  EXPECT_LT(result.losses.back(), result.losses.front()) << what;
}

}  // namespace tessera
