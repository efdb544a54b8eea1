// A rank that trains under the engine and fails as told. Started by engine_fault_test.cc.
//
//   engine_fault_rank FAULT STRATEGY [RANKS_PER_NODE]
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.h"
#include "parallel/sharded_optimizer.h"
#include "parallel/small_model.h"
#include "parallel_faults/faulty_runner.h"

namespace {

using namespace tessera;
using namespace std::chrono_literals;

constexpr int kCulprit = 1;

// Records when it fails, so that the test can measure from there.
void note_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::ofstream(std::string(std::getenv("TEST_FOLDER")) + "/died")
      << std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// A unit so large that its buffer comes from the system, not from free space on the heap.
struct LargeModel : UnitModel {
  struct Block : torch::nn::Module {
    Block() { weight = register_parameter("weight", at::full({kNumel}, 1e-7f)); }
    static constexpr std::int64_t kNumel = 16 << 20;  // 64 MiB
    at::Tensor weight;
  };
  LargeModel() : UnitModel("LargeModel") {
    scale = register_parameter("scale", at::ones({8}));
    for (const char* name : {"block_0", "block_1"}) {
      blocks.push_back(register_module(name, std::make_shared<Block>()));
      list.push_back({name, "Block", blocks.back().get()});
    }
  }
  const std::vector<Unit>& units() const override { return list; }
  at::Tensor loss(UnitRunner& runner) {
    at::Tensor x = scale;
    for (std::size_t i = 0; i < list.size(); ++i) {
      x = runner.run(list[i], x, [this, i](const at::Tensor& y) { return y * blocks[i]->weight.sum(); });
    }
    return x.sum();
  }
  at::Tensor scale;
  std::vector<std::shared_ptr<Block>> blocks;
  std::vector<Unit> list;
};

// Leaves this process less memory than one more block takes.
std::vector<at::Tensor> use_up_memory() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto used = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit limit{used + (32 << 20), used + (32 << 20)};
  if (setrlimit(RLIMIT_AS, &limit) != 0) throw Error("cannot limit the memory");
  std::vector<at::Tensor> held;  // what the allocator had kept for later
  try {
    while (held.size() < 1000) held.push_back(at::empty({LargeModel::Block::kNumel}));
  } catch (const std::exception&) {
  }
  return held;
}

EngineOptions offloading_options(const std::string& strategy, bool offloads = false) {
  EngineOptions options;
  options.spread = SpreadOptions{.strategy = strategy, .offload_optimizer = offloads};
  options.host_memory_is_separate = offloads;
  return options;
}

int run_out_of_memory(World& world, const std::string& strategy) {
  LargeModel model;
  Engine engine(world, model, model.units(), offloading_options(strategy));
  std::vector<at::Tensor> held;
  if (world.rank() == kCulprit) {
    held = use_up_memory();
    note_time();
  }
  const auto pass = engine.forward();
  model.loss(engine);
  return 0;
}

struct Training {
  World& world;
  const std::string& fault;
  SmallModel model;
  Engine engine;
  ShardedOptimizer optimizer;

  Training(World& in, const std::string& what, const std::string& strategy)
      : world(in),
        fault(what),
        engine(world, model, model.units(), offloading_options(strategy, what == "background")),
        optimizer(engine, choose_optimizer("adamw"),
                  what == "background" ? HostUpdates::kInBackground : HostUpdates::kAtOnce) {}

  bool goes_wrong(int step, const char* in) const { return world.rank() == kCulprit && step == 1 && fault == in; }

  UpdateResult step(int number) {
    FaultyRunner runner(engine, "block_1");
    if (goes_wrong(number, "forward")) {
      runner.in_forward = [] {
        note_time();
        throw std::runtime_error("the roof is leaking");
      };
    }
    if (goes_wrong(number, "backward")) {
      runner.in_backward = [](const at::Tensor&) -> at::Tensor {
        note_time();
        throw std::runtime_error("the roof is leaking");
      };
    }
    if (goes_wrong(number, "nan")) {
      runner.in_backward = [](const at::Tensor& gradient) {
        return gradient * std::numeric_limits<float>::quiet_NaN();
      };
    }
    const at::Tensor ids = at::arange(8) + world.rank();
    at::Tensor loss;
    {
      const auto pass = engine.forward();
      loss = model.loss(ids, ids + 1, runner);
    }
    if (goes_wrong(number, "hook")) {
      for (const auto& item : model.named_parameters()) {
        if (item.key() != "block_1.out") continue;
        item.value().register_hook([](const at::Tensor&) {
          note_time();
          throw std::runtime_error("the roof is leaking");
        });
      }
    }
    engine.backward(loss);
    if (goes_wrong(number, "optimizer") || goes_wrong(number, "background")) {
      note_time();
      at::Tensor master = engine.units()[1].master();
      master.resize_({3});  // the optimizer's kernel refuses tensors that do not fit
    }
    return optimizer.update({.learning_rate = 1e-3});
  }
};

int train(World& world, const std::string& fault, const std::string& strategy) {
  Training training(world, fault, strategy);
  for (int i = 0; i < 4; ++i) {
    const UpdateResult result = training.step(i);
    if (result.skipped) {
      fmt::print("rank {} skips step {}: {}\n", world.rank(), i, describe(result.faults));
      std::fflush(stdout);
    }
  }
  fmt::print("rank {} made {} updates\n", world.rank(), training.optimizer.num_updates());
  std::fflush(stdout);
  return 0;
}

int build_another_model(World& world, const std::string& strategy) {
  SmallModel model(world.rank() == kCulprit ? 2 : 3);
  if (world.rank() == kCulprit) note_time();
  Engine engine(world, model, model.units(), offloading_options(strategy));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argv[1], strategy = argv[2];
  WorldOptions options;
  options.comm_timeout = 5s;
  options.start_timeout = 10s;
  if (argc > 3) options.ranks_per_node = std::atoi(argv[3]);
  return run_rank(options, [&](World& world) {
    if (fault == "memory") return run_out_of_memory(world, strategy);
    if (fault == "model") return build_another_model(world, strategy);
    const bool is_culprit = world.rank() == kCulprit;
    if (fault == "strategy") return train(world, "none", is_culprit ? "zero2" : strategy);
    return train(world, fault, strategy);
  });
}
