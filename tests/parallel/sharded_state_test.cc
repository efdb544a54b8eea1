// Checkpoints by all ranks: written under each strategy at 1 to 4 ranks, read under every other one; damaged in every
// way that a disk knows.
#include "state/sharded_state.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "core/file.h"
#include "parallel/flat_unit.h"
#include "parallel/rank_checks.h"
#include "parallel/small_model.h"
#include "state/sharded_state.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Ranks {
  int num_ranks = 1, ranks_per_node = 0;
  std::string name() const { return fmt::format("{} ranks, {} per node", num_ranks, ranks_per_node); }
};

const std::vector<Ranks> kRanks = {{1}, {2}, {3}, {4}, {4, 2}};

struct Spread {
  std::string strategy;
  Ranks ranks;
  at::ScalarType type = at::kFloat;
  bool offloads = false;
  std::string name() const { return strategy + " on " + ranks.name(); }
};

WorldOptions nodes_of(const Ranks& ranks) {
  WorldOptions options;
  options.ranks_per_node = ranks.ranks_per_node;
  return options;
}

bool fits(const Spread& spread) {
  try {
    run_thread_ranks(spread.ranks.num_ranks, nodes_of(spread.ranks),
                     [&](World& world) { check_world(world, {.strategy = spread.strategy}); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// A model with an optimizer, spread over ranks.
class SpreadStep {
 public:
  SpreadStep(World& world, const Spread& spread, std::uint64_t seed)
      : world_(world), model_(3, seed), step_(world, model_, model_.units(), options(spread)) {
    step_.set_optimizer(choose_optimizer("adamw"));
  }

  SpreadModel spread() { return {world_, step_.engine(), model_}; }
  TrainStep& step() { return step_; }

  // Values that tell every element of every tensor from all others.
  void fill(float from) {
    const at::NoGradGuard no_gradients;
    for (FlatState& state : states()) {
      from += 0.5F;
      for (std::size_t i = 0; i < step_.engine().units().size(); ++i) {
        const FlatLayout& layout = step_.engine().units()[i].layout();
        const at::Tensor whole = at::zeros({layout.padded_numel()});
        whole.narrow(0, 0, layout.numel()).copy_(at::arange(layout.numel()).mul(1e-3) + (from + static_cast<float>(i)));
        state.replace(i, whole);
      }
    }
    step_.optimizer().set_num_updates(17);
  }

  // Every state of every parameter.
  std::vector<at::Tensor> wholes() {
    std::vector<at::Tensor> all;
    for (FlatState& state : states()) {
      for (std::size_t i = 0; i < step_.engine().units().size(); ++i) {
        FlatUnit& unit = step_.engine().units()[i];
        unit.finish_update();
        const at::Tensor whole = gather_whole(unit, step_.engine().groups(), state.part(i).joined(), at::kCPU);
        for (const FlatSlot& slot : unit.layout().slots()) all.push_back(view_of(whole, slot).clone());
      }
    }
    return all;
  }

  // What the model computes with.
  std::vector<at::Tensor> computed() {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> all;
    for (FlatUnit& unit : step_.engine().units()) unit.wait_gather();
    for (const at::Tensor& parameter : model_.parameters()) all.push_back(parameter.clone());
    for (FlatUnit& unit : step_.engine().units()) unit.release();
    return all;
  }

 private:
  static TrainStepOptions options(const Spread& spread) {
    TrainStepOptions options;
    options.spread.strategy = spread.strategy;
    options.spread.offload_optimizer = options.spread.offload_parameters = spread.offloads;
    options.types.compute = options.types.reduce = spread.type;
    return options;
  }
  std::vector<FlatState> states() {
    std::vector<FlatState> states = optimizer_states_of(step_.engine(), step_.optimizer());
    states.insert(states.begin(), parameters_of(step_.engine()));
    return states;
  }

  World& world_;
  SmallModel model_;
  TrainStep step_;
};

class ShardedState : public WithFolder {
 protected:
  void run(const Spread& spread, const std::function<void(World&, SpreadStep&)>& work, std::uint64_t seed = 1) {
    run_thread_ranks(spread.ranks.num_ranks, nodes_of(spread.ranks), [&](World& world) {
      SpreadStep step(world, spread, seed);
      work(world, step);
    });
  }

  fs::path save(const Spread& spread, float from = 1) {
    const fs::path folder = folder_ / fmt::format("{}-{}-{}-{}", spread.strategy, spread.ranks.num_ranks,
                                                  spread.ranks.ranks_per_node, from);
    fs::create_directories(folder);
    run(spread, [&](World& world, SpreadStep& step) {
      step.fill(from);
      StateSnapshot snapshot(step.spread(), step.step());
      at::Tensor unused;
      snapshot.copy(StateSnapshot::Copies::kNone, unused);
      const CheckpointIndex own = snapshot.write(folder);
      const CheckpointIndex index = gather_index(step.spread(), progress_numbers(step.step()), own);
      if (world.rank() == 0) write_file_atomically(folder / kIndexFile, index_text(index));
    });
    return folder;
  }

  void expect_loaded(const fs::path& folder, const Spread& spread, const std::vector<at::Tensor>& expected,
                     const std::vector<at::Tensor>& computed) {
    run(
        spread,
        [&](World& world, SpreadStep& step) {
          CheckpointReader reader(folder);
          EXPECT_EQ(read_state(step.spread(), step.step(), reader).num_updates, 17);
          const std::vector<at::Tensor> found = step.wholes(), used = step.computed();
          if (world.rank() != 0) return;
          for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_TRUE(at::equal(found[i], expected[i])) << folder << " under " << spread.name() << ", state " << i;
          }
          for (std::size_t i = 0; i < computed.size(); ++i) {
            EXPECT_TRUE(at::equal(used[i], computed[i].to(spread.type))) << folder << " under " << spread.name();
          }
        },
        /*seed=*/2);
  }
};

TEST_F(ShardedState, IsReadUnderEveryStrategyByAnyNumberOfRanks) {
  std::vector<Spread> all;
  for (const std::string& strategy : strategy_names()) {
    for (const Ranks& ranks : kRanks) {
      if (fits({strategy, ranks})) all.push_back({strategy, ranks});
    }
  }
  ASSERT_GT(all.size(), 40u);
  std::vector<at::Tensor> expected, computed;
  run({"ddp", {1}}, [&](World&, SpreadStep& step) {
    step.fill(1);
    expected = step.wholes();
    computed = step.computed();
  });
  std::size_t next = 0;
  for (const Spread& saved : all) {
    const fs::path folder = save(saved);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), saved.ranks.num_ranks + 1) << saved.name();
    // Not all pairs: each is read by a seventh of the others, and each other reads as many.
    for (std::size_t i = next++ % 7; i < all.size(); i += 7) expect_loaded(folder, all[i], expected, computed);
    expect_loaded(folder, {saved.strategy, saved.ranks, at::kBFloat16}, expected, computed);
  }
  const fs::path folder = save({"zero3", {4}});
  for (const char* strategy : {"zero2", "zero3"}) {
    expect_loaded(folder, {strategy, {2}, at::kFloat, /*offloads=*/strategy == std::string("zero3")}, expected,
                  computed);
  }
}

TEST_F(ShardedState, RanksShareTheWriting) {
  const auto bytes_of = [&](const fs::path& folder) {
    std::vector<std::int64_t> bytes;
    const CheckpointReader reader(folder);
    for (const auto& [name, file] : reader.index().files) bytes.push_back(file.bytes);
    return bytes;
  };
  for (const char* strategy : {"ddp", "zero1", "zero3"}) {
    const std::vector<std::int64_t> bytes = bytes_of(save({strategy, {4}}));
    ASSERT_EQ(bytes.size(), 4u);
    // Units are split by whole blocks, so that small ones are not split evenly.
    EXPECT_LT(*std::max_element(bytes.begin(), bytes.end()), bytes[0] + bytes[1] + bytes[2] + bytes[3]) << strategy;
  }
  const std::vector<std::int64_t> shared = bytes_of(save({"ddp", {4}}, 2));
  EXPECT_LT(static_cast<double>(shared[0]), 1.2 * static_cast<double>(shared[3])) << "values that all have are shared";
}

// Each byte of each file, in turn: nothing that differs is ever loaded.
TEST_F(ShardedState, EveryDamageIsFoundAndNamed) {
  const Spread spread{"zero3", {2}};
  const fs::path good = save(spread), other = save(spread, 5);
  std::mt19937 random(1);
  const auto load = [&](const fs::path& folder) {
    return message_of([&] {
      run(spread, [&](World&, SpreadStep& step) {
        CheckpointReader reader(folder);
        reader.check_sizes();
        read_state(step.spread(), step.step(), reader);
      });
    });
  };
  const std::string nothing = "nothing was thrown";
  ASSERT_EQ(load(good), nothing);
  const fs::path bad = folder_ / "bad";
  const auto damaged = [&](const std::string& file, const std::function<void(std::string&)>& damage) {
    fs::remove_all(bad);
    fs::copy(good, bad);
    std::string bytes = read_file(bad / file);
    damage(bytes);
    std::ofstream(bad / file, std::ios::binary) << bytes;
    return load(bad);
  };
  for (const auto& entry : fs::directory_iterator(good)) {
    const std::string file = entry.path().filename().string();
    for (int i = 0; i < 12; ++i) {
      const std::string message = damaged(file, [&](std::string& bytes) {
        // The first trials are in the header, the others anywhere.
        const std::size_t at = random() % (i < 4 ? std::min<std::size_t>(bytes.size(), 400) : bytes.size());
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      });
      // A changed blank of the index changes nothing that it says.
      EXPECT_TRUE(contains(message, file) || (message == nothing && file == kIndexFile)) << message;
      EXPECT_TRUE(contains(message, "damaged") || file == kIndexFile) << file << ": " << message;
    }
    EXPECT_TRUE(contains(damaged(file,
                                 [](std::string& bytes) {
                                   bytes.pop_back();
                                   bytes.pop_back();
                                 }),
                         file))
        << file;
    EXPECT_TRUE(contains(damaged(file, [](std::string& bytes) { bytes.clear(); }), file)) << file;
    EXPECT_TRUE(contains(damaged(file, [](std::string& bytes) { bytes += "more"; }), file)) << file;
    if (file != kIndexFile) {
      EXPECT_TRUE(contains(damaged(file, [&](std::string& bytes) { bytes = read_file(other / file); }), "damaged"))
          << "another run's " << file;
    }
    fs::remove_all(bad);
    fs::copy(good, bad);
    fs::remove(bad / file);
    EXPECT_TRUE(contains(load(bad), file)) << file << " removed";
  }
  fs::remove_all(bad);
  fs::copy(good, bad);
  fs::copy_file(other / kIndexFile, bad / kIndexFile, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(contains(load(bad), "damaged")) << "another run's index";
}

TEST_F(ShardedState, AnotherModelOrOptimizerIsRefusedOnAllRanksAlike) {
  const fs::path folder = save({"zero3", {2}});
  const auto expect_refused = [&](std::int64_t num_blocks, const char* optimizer, const char* what) {
    run_thread_ranks(2, {}, [&](World& world) {
      SmallModel model(num_blocks);
      TrainStep step(world, model, model.units(), {});
      step.set_optimizer(choose_optimizer(optimizer));
      CheckpointReader reader(folder);
      EXPECT_TRUE(contains(message_of([&] { read_state({world, step.engine(), model}, step, reader); }), what)) << what;
    });
  };
  expect_refused(4, "adamw", "tensor 'model.block_3.in' is missing");
  expect_refused(2, "adamw", "is unknown");
  expect_refused(3, "sgd", "of another model or optimizer");
}

}  // namespace
}  // namespace tessera
