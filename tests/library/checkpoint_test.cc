// Weights of a sharded model in files: every strategy writes the same file and reads any.
#include "tessera/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "library/models.h"
#include "parallel/unit_layout.h"
#include "support/contains.h"
#include "support/cpu_memory.h"
#include "support/message_of.h"
#include "support/test_folder.h"
#include "tessera/optimizer.h"
#include "weights/weights.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string bytes_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ShardOptions options_of(const std::string& strategy, BlockNet& model) {
  return {.spread = {.strategy = strategy}, .units = units_of<BlockImpl>(model)};
}

void train(World& world, Sharded& sharded, const std::function<at::Tensor(const Batch&)>& loss) {
  Optimizer optimizer(sharded, AdamW{.learning_rate = 1e-2});
  for (int step = 0; step < 3; ++step) {
    sharded.backward(loss(batch_of(step, world.rank(), world.size())));
    optimizer.step();
  }
}

void train(World& world, Sharded& sharded, BlockNet& model) {
  train(world, sharded,
        [&](const Batch& b) { return sharded.forward([&] { return loss_of(model.forward(b.x, sharded), b.y); }); });
}

// The model's current answer; all ranks must give the same.
at::Tensor answer(World& world, Sharded& sharded, BlockNet& model) {
  const at::NoGradGuard no_gradients;
  const Batch batch = batch_of(7, 0, 1);
  const at::Tensor logits = sharded.forward([&] { return model.forward(batch.x, sharded); });
  const at::Tensor first = logits.clone();
  world.all().broadcast(first, 0)->wait();
  EXPECT_TRUE(at::equal(first, logits)) << "rank " << world.rank();
  return logits;
}

TEST(Checkpoint, EveryStrategyWritesTheSameFileAndReadsEveryOther) {
  const TestFolder folder;
  at::Tensor expected;
  for (const std::string strategy : {"ddp", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op", "hybrid_shard"}) {
    const fs::path file = folder / (strategy + ".safetensors");
    run_thread_ranks(2, {}, [&](World& world) {
      BlockNet model;
      Sharded sharded(world, model, options_of(strategy, model));
      train(world, sharded, model);
      save_weights(sharded, file);
      const at::Tensor logits = answer(world, sharded, model);
      if (world.rank() == 0 && strategy == "ddp") expected = logits;
      train(world, sharded, model);  // still possible after saving
    });
    EXPECT_EQ(bytes_of_file(file), bytes_of_file(folder / "ddp.safetensors")) << strategy;
  }
  for (const std::string strategy : {"ddp", "zero2", "full_shard", "shard_grad_op", "hybrid_shard"}) {
    run_thread_ranks(3, {}, [&](World& world) {
      BlockNet model;
      Sharded sharded(world, model, options_of(strategy, model));
      train(world, sharded, model);
      load_weights(sharded, folder / "full_shard.safetensors");
      EXPECT_TRUE(at::equal(answer(world, sharded, model), expected)) << strategy;
      train(world, sharded, model);
    });
  }
}

TEST(Checkpoint, TwoNodesWithTheirOwnShardsWriteWhatTheyRead) {
  const TestFolder folder;
  WorldOptions two_nodes;
  two_nodes.ranks_per_node = 2;
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("ddp", model));
    train(world, sharded, model);
    save_weights(sharded, folder / "first");
  });
  run_thread_ranks(4, two_nodes, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("hybrid_shard", model));
    load_weights(sharded, folder / "first");
    save_weights(sharded, folder / "second");
  });
  EXPECT_EQ(bytes_of_file(folder / "second"), bytes_of_file(folder / "first"));
}

TEST(Checkpoint, LoadsBeforeSharding) {
  const TestFolder folder;
  const fs::path file = folder / "model.safetensors";
  at::Tensor expected, found;
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("full_shard", model));
    train(world, sharded, model);
    save_weights(sharded, file);
    const at::Tensor logits = answer(world, sharded, model);
    if (world.rank() == 0) expected = logits;
  });
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    if (world.rank() == 0) load_weights(model, file);  // the others get rank 0's values
    Sharded sharded(world, model, options_of("zero2", model));
    const at::Tensor logits = answer(world, sharded, model);
    if (world.rank() == 0) found = logits;
  });
  EXPECT_TRUE(at::equal(found, expected));
}

TEST(Checkpoint, HoldsTheFloatMasterOfAHalfModel) {
  const TestFolder folder;
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    ShardOptions options = options_of("full_shard", model);
    options.compute_type = at::kBFloat16;
    Sharded sharded(world, model, options);
    Optimizer optimizer(sharded, AdamW{.learning_rate = 1e-4});
    const Batch batch = batch_of(0, world.rank(), 2, at::kBFloat16);
    sharded.backward(sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y); }));
    optimizer.step();
    save_weights(sharded, folder / "a");
    load_weights(sharded, folder / "a");
    save_weights(sharded, folder / "b");
  });
  EXPECT_EQ(bytes_of_file(folder / "a"), bytes_of_file(folder / "b"));
  BlockNet model;
  load_weights(model, folder / "a");
  const at::Tensor weight = model.head->weight.detach();
  EXPECT_FALSE(at::equal(weight, weight.to(at::kBFloat16).to(at::kFloat))) << "not rounded";
}

TEST(Checkpoint, KeepsBuffersAndBothNamesOfATiedWeight) {
  const TestFolder folder;
  const fs::path file = folder / "model.safetensors";
  const auto loss = [](Sharded& sharded, PlainNet& model) {
    return [&](const Batch& b) { return sharded.forward([&] { return loss_of(model.forward(b.x), b.y); }); };
  };
  at::Tensor mean;
  run_thread_ranks(2, {}, [&](World& world) {
    PlainNet model;
    Sharded sharded(world, model, {.spread = {.strategy = "zero3"}});
    train(world, sharded, loss(sharded, model));
    save_weights(sharded, file);
    if (world.rank() == 0) mean = model.norm->running_mean.clone();
  });
  EXPECT_GT(mean.abs().sum().item<double>(), 0);
  const Weights weights = Weights::open(file);
  EXPECT_NE(weights.find("second.weight"), nullptr);
  EXPECT_EQ(weights.find("tied.weight"), nullptr) << "once";
  EXPECT_EQ(weights.metadata().at("tied.weight"), "second.weight");
  run_thread_ranks(2, {}, [&](World& world) {
    PlainNet model;
    Sharded sharded(world, model, {.spread = {.strategy = "full_shard"}});
    load_weights(sharded, file);
    EXPECT_TRUE(at::equal(model.norm->running_mean, mean)) << "rank " << world.rank();
    EXPECT_EQ(model.norm->num_batches_tracked.item<std::int64_t>(), 3);
  });
  PlainNet alone;
  load_weights(alone, file);
  EXPECT_TRUE(at::equal(alone.norm->running_mean, mean));
}

TEST(Checkpoint, AFailureOfRank0IsEveryRanksAndHarmsNothing) {
  const TestFolder folder;
  PlainNet other;
  run_thread_ranks(1, {}, [&](World& world) {
    Sharded sharded(world, other);
    save_weights(sharded, folder / "other");
  });
  run_thread_ranks(3, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("full_shard", model));
    const at::Tensor before = answer(world, sharded, model);
    EXPECT_TRUE(contains(message_of([&] { save_weights(sharded, folder / "no/such/folder/file"); }), "no/such/folder"));
    EXPECT_TRUE(contains(message_of([&] { load_weights(sharded, folder / "absent"); }), "absent"));
    const std::string misfit = message_of([&] { load_weights(sharded, folder / "other"); });
    EXPECT_TRUE(contains(misfit, "the weights do not fit the model: missing in the file: block_0.inner.weight"));
    EXPECT_TRUE(contains(misfit, "unknown to the model"));
    EXPECT_TRUE(at::equal(answer(world, sharded, model), before));
    train(world, sharded, model);
  });
}

// Six steps at once, against three, a new program and three more under another strategy: the same bits.
TEST(Checkpoint, ARunGoesOnAsIfItHadNotStopped) {
  const TestFolder folder;
  const auto step = [](World& world, Sharded& sharded, Optimizer& optimizer, BlockNet& model, int number,
                       at::ScalarType type) {
    const Batch batch = batch_of(number, world.rank(), world.size(), type);
    const at::Tensor loss = sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y); });
    sharded.backward(loss);
    optimizer.step({.max_norm = 1});
    return mean_over_ranks(world, loss);
  };
  const auto run = [&](const auto& how, at::ScalarType type, const std::string& strategy, int first, int last,
                       bool loads, bool saves) {
    std::vector<double> losses;
    run_thread_ranks(2, {}, [&](World& world) {
      BlockNet model;
      ShardOptions options = options_of(strategy, model);
      options.compute_type = type;
      Sharded sharded(world, model, options);
      Optimizer optimizer(sharded, how);
      if (loads) {
        load_weights(sharded, folder / "weights");
        load_optimizer(optimizer, folder / "optimizer");
        EXPECT_EQ(optimizer.num_updates(), first);
      }
      for (int i = first; i < last; ++i) {
        const double loss = step(world, sharded, optimizer, model, i, type);
        if (world.rank() == 0) losses.push_back(loss);
      }
      if (saves) {
        save_weights(sharded, folder / "weights");
        save_optimizer(optimizer, folder / "optimizer");
      }
    });
    return losses;
  };
  const auto check = [&](const auto& how, at::ScalarType type) {
    const std::vector<double> expected = run(how, type, "zero2", 0, 6, false, false);
    for (const char* strategy : {"ddp", "zero1", "full_shard"}) {
      std::vector<double> losses = run(how, type, "zero2", 0, 3, false, true);
      for (const double loss : run(how, type, strategy, 3, 6, true, false)) losses.push_back(loss);
      EXPECT_EQ(losses, expected) << strategy << " " << type;
    }
  };
  check(AdamW{.learning_rate = 1e-2}, at::kFloat);
  check(AdamW{.learning_rate = 1e-2}, at::kBFloat16);
  check(Sgd{.learning_rate = 1e-1, .momentum = 0.9}, at::kFloat);
  check(Sgd{.learning_rate = 1e-1}, at::kFloat);  // no moments at all
}

TEST(Checkpoint, KeepsTheLossScale) {
  const TestFolder folder;
  run_thread_ranks(1, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, {.compute_type = at::kHalf});
    Optimizer optimizer(sharded, AdamW{});
    const Batch batch = batch_of(0, 0, 1, at::kHalf);
    const auto step = [&](double factor) {
      sharded.backward(sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y) * factor; }));
      return optimizer.step();
    };
    const StepResult first = step(1e6);  // overflows at the first scale
    EXPECT_TRUE(first.skipped);
    EXPECT_EQ(first.loss_scale, 65536);
    EXPECT_TRUE(contains(first.why_skipped, "rank 0")) << first.why_skipped;
    save_optimizer(optimizer, folder / "optimizer");
    step(1e6);
    load_optimizer(optimizer, folder / "optimizer");
    EXPECT_EQ(step(1).loss_scale, 32768);
  });
}

TEST(Checkpoint, RefusesTheStateOfAnotherOptimizer) {
  const TestFolder folder;
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model);
    {
      Optimizer sgd(sharded, Sgd{.momentum = 0.9});
      save_optimizer(sgd, folder / "sgd");
    }
    save_weights(sharded, folder / "weights");
    Optimizer adamw(sharded, AdamW{});
    EXPECT_TRUE(contains(message_of([&] { load_optimizer(adamw, folder / "sgd"); }),
                         "the optimizer's state does not fit the model: missing in the file: exp_avg."));
    EXPECT_TRUE(contains(message_of([&] { load_optimizer(adamw, folder / "weights"); }), "unknown to the model"));
  });
}

// What saving takes on each rank beyond the sharded state: one of four units, whole, in float32; for a moment the
// backend's thread may still hold the one before.
TEST(Checkpoint, HoldsAtMostTwoUnitsOfFour) {
  const TestFolder folder;
  start_counting_cpu_memory();
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("full_shard", model));
    Optimizer optimizer(sharded, AdamW{});
    const auto peak_of = [&](const std::function<void()>& work) {
      world.all().barrier()->wait();
      reset_peak_cpu_bytes_of_thread();
      const std::int64_t before = live_cpu_bytes_of_thread();
      work();
      return peak_cpu_bytes_of_thread() - before;
    };
    const std::int64_t unit_bytes = 4 * world.size() * kBlockNumel;  // each of the four is under one block per rank
    for (const auto& work : {std::function<void()>([&] { save_weights(sharded, folder / "weights"); }),
                             std::function<void()>([&] { load_weights(sharded, folder / "weights"); }),
                             std::function<void()>([&] { save_optimizer(optimizer, folder / "optimizer"); })}) {
      EXPECT_LT(peak_of(work), unit_bytes * 5 / 2);
    }
  });
}

TEST(Checkpoint, IsRefusedWithinAStep) {
  const TestFolder folder;
  run_thread_ranks(2, {}, [&](World& world) {
    BlockNet model;
    Sharded sharded(world, model, options_of("zero2", model));
    Optimizer optimizer(sharded, AdamW{});
    const Batch batch = batch_of(0, world.rank(), 2);
    sharded.backward(sharded.forward([&] { return loss_of(model.forward(batch.x, sharded), batch.y); }));
    EXPECT_TRUE(contains(message_of([&] { save_weights(sharded, folder / "file"); }), "within a step"));
    EXPECT_TRUE(contains(message_of([&] { load_weights(sharded, folder / "file"); }), "within a step"));
    optimizer.step();
    save_weights(sharded, folder / "file");
  });
}

}  // namespace
}  // namespace tessera
