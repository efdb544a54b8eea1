// One model trained through both doors, `tessera train`'s Trainer and the public library: the same bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "library/shard_impl.h"
#include "tessera/checkpoint.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"
#include "train/trainer.h"

namespace tessera {
namespace {

constexpr std::int64_t kNumUpdates = 6, kNumMicroSteps = 2, kRowsPerPass = 4, kWidth = 6;
constexpr double kRate = 0.05, kMaxNorm = 0.5;

// A parameter with values that depend on nothing but its number; on the meta device without any.
at::Tensor door_parameter(at::IntArrayRef shape, int number, at::Device device) {
  if (device.is_meta()) return at::empty(shape, at::device(device));
  return at::arange(c10::multiply_integers(shape), at::kFloat).add(number).sin().mul(0.4).view(shape);
}

struct DoorBlock : torch::nn::Module {
  DoorBlock(int number, at::Device device) {
    weight = register_parameter("weight", door_parameter({kWidth, kWidth}, 10 * number, device));
    bias = register_parameter("bias", door_parameter({kWidth}, 10 * number + 5, device));
  }
  at::Tensor forward(const at::Tensor& x) { return at::tanh(at::linear(x, weight, bias)) + x; }
  at::Tensor weight, bias;
};

class DoorModel : public UnitModel {
 public:
  explicit DoorModel(at::Device device = at::kCPU) : UnitModel("DoorModel") {
    for (int i = 0; i < 3; ++i) {
      const std::string name = "block" + std::to_string(i);
      blocks_.push_back(register_module(name, std::make_shared<DoorBlock>(i, device)));
      units_.push_back({name, "DoorBlock", blocks_.back().get()});
    }
    head_ = register_parameter("head", door_parameter({1, kWidth}, 100, device));
  }
  const std::vector<Unit>& units() const override { return units_; }
  at::Tensor loss_sum(at::Tensor x, const at::Tensor& y, UnitRunner& runner) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      x = runner.run(units_[i], x, [block = blocks_[i]](const at::Tensor& in) { return block->forward(in); });
    }
    return (at::linear(x, head_).squeeze(1) - y).to(at::kFloat).square().sum();
  }

 private:
  std::vector<std::shared_ptr<DoorBlock>> blocks_;
  at::Tensor head_;
  std::vector<Unit> units_;
};

struct DoorBatch {
  at::Tensor x, y;
};
DoorBatch door_batch(std::int64_t step, std::int64_t micro_step, int rank, at::ScalarType type) {
  const auto x = at::arange(kRowsPerPass * kWidth, at::kFloat)
                     .add(static_cast<double>(step * 31 + micro_step * 7 + rank * 3))
                     .mul(0.7)
                     .sin()
                     .view({kRowsPerPass, kWidth});
  return {x.to(type), x.sum(1).cos().to(type)};
}

class DoorTask : public TrainTask {
 public:
  DoorTask(World& world, at::ScalarType type) : world_(world), type_(type) {}
  UnitModel& model() override { return model_; }
  std::int64_t num_rows() const override { return kRowsPerPass * kNumMicroSteps * kNumUpdates * world_.size(); }
  std::int64_t num_batches_after(std::int64_t /*num_taken*/) const override { return kNumMicroSteps * kNumUpdates; }
  std::int64_t num_eval_rows() const override { return 0; }
  UpdateShape begin_update(const Update& update) override {
    step_ = update.step;
    micro_step_ = 0;
    return {kNumMicroSteps, kRowsPerPass * kNumMicroSteps * world_.size()};
  }
  void load() override {}
  at::Tensor loss_sum(UnitRunner& runner, std::uint64_t, double) override {
    const DoorBatch batch = door_batch(step_, micro_step_++, world_.rank(), type_);
    return model_.loss_sum(batch.x, batch.y, runner);
  }
  Totals evaluate(UnitRunner&, const std::function<void(std::int64_t, std::int64_t)>&) override { return {}; }
  LogRecord metrics(const std::vector<double>&) const override { return {}; }

 private:
  World& world_;
  at::ScalarType type_;
  DoorModel model_;
  std::int64_t step_ = 0, micro_step_ = 0;
};

// What every rank ends with, gathered whole.
std::vector<at::Tensor> masters_of(Engine& engine) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> masters;
  for (FlatUnit& unit : engine.units()) {
    unit.finish_update();
    at::Tensor whole = unit.master();
    if (unit.is_part() && engine.groups().shard != nullptr) {
      whole = at::empty({unit.layout().padded_numel()}, whole.options());
      engine.groups().shard->all_gather(whole, unit.master().contiguous())->wait();
    }
    masters.push_back(whole.clone());
  }
  return masters;
}

struct Door {
  std::string strategy;
  at::ScalarType type;
  bool recomputes;
};
void PrintTo(const Door& door, std::ostream* out) {
  *out << door.strategy << ", " << c10::toString(door.type) << (door.recomputes ? ", recomputed" : "");
}

class TwoDoors : public testing::TestWithParam<Door> {};

TEST_P(TwoDoors, GiveTheSameBits) {
  const Door& door = GetParam();
  run_thread_ranks(2, {}, [&](World& world) {
    TrainSettings settings;
    settings.spread.strategy = door.strategy;
    settings.precision.compute = door.type == at::kFloat      ? NumberType::kFloat32
                                 : door.type == at::kBFloat16 ? NumberType::kBFloat16
                                                              : NumberType::kFloat16;
    settings.optimizer.optim = "adamw_torch_fused";
    settings.optimizer.learning_rate = kRate;
    settings.optimizer.numbers.weight_decay = 0.01;
    settings.optimizer.decays_all = true;
    settings.optimizer.max_grad_norm = kMaxNorm;
    settings.schedule.kind = "constant";
    settings.loop.batch_size = kRowsPerPass;
    settings.loop.accumulation = kNumMicroSteps;
    settings.loop.num_epochs = 1;
    settings.loop.gradient_checkpointing = door.recomputes;
    settings.loop.merge_accumulation = MergeAccumulation::kOff;
    settings.flow.saving = Interval::kNo;
    DoorTask task(world, door.type);
    Listeners nobody;
    Trainer trainer(world, task, settings, plan_steps(task, settings, world.size()), {}, nobody);
    EXPECT_EQ(trainer.run(), RunEnd::kFinished);
    const std::vector<at::Tensor> by_trainer = masters_of(trainer.step().engine());

    DoorModel model;
    Sharded sharded(world, model,
                    {.spread = {.strategy = door.strategy},
                     .compute_type = door.type,
                     .accumulates = true,
                     .recomputes = door.recomputes});
    Optimizer optimizer(sharded, AdamW{.learning_rate = kRate, .weight_decay = 0.01});
    const double mean = 1.0 / static_cast<double>(kRowsPerPass * kNumMicroSteps * world.size());
    for (std::int64_t step = 1; step <= kNumUpdates; ++step) {
      for (std::int64_t micro_step = 0; micro_step < kNumMicroSteps; ++micro_step) {
        const DoorBatch batch = door_batch(step, micro_step, world.rank(), door.type);
        const at::Tensor loss = sharded.forward([&] { return model.loss_sum(batch.x, batch.y, sharded) * mean; });
        micro_step + 1 < kNumMicroSteps ? sharded.accumulate(loss) : sharded.backward(loss);
      }
      optimizer.step({.max_norm = kMaxNorm, .divisor = 1});
    }
    EXPECT_GE(optimizer.num_updates(), door.type == at::kHalf ? 2 : kNumUpdates)
        << "float16's scale finds its size first";
    EXPECT_EQ(optimizer.num_updates(), trainer.step().optimizer().num_updates());
    const std::vector<at::Tensor> by_library = masters_of(sharded.impl().step.engine());
    ASSERT_EQ(by_trainer.size(), by_library.size());
    DoorModel untrained;
    for (std::size_t i = 0; i < by_trainer.size(); ++i) {
      EXPECT_TRUE(at::equal(by_trainer[i], by_library[i])) << "unit " << i << ", rank " << world.rank();
    }
    EXPECT_GT((by_library[0].narrow(0, 0, kWidth) - untrained.parameters()[0].flatten().narrow(0, 0, kWidth))
                  .abs()
                  .max()
                  .item<float>(),
              1e-3)
        << "nothing was learnt";
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, TwoDoors,
                         testing::Values(Door{"ddp", at::kFloat, false}, Door{"zero2", at::kFloat, true},
                                         Door{"full_shard", at::kFloat, false}, Door{"full_shard", at::kBFloat16, true},
                                         Door{"zero1", at::kHalf, false}));

// A model of which no rank ever holds more than its own part and one unit.
TEST(MetaModel, StartsWithValuesThatAreSuppliedUnitByUnit) {
  DoorModel plain;
  std::map<std::string, at::Tensor> values;
  for (const auto& item : plain.named_parameters()) values[item.key()] = item.value().detach().clone();
  run_thread_ranks(2, {}, [&](World& world) {
    DoorModel model(at::kMeta);
    int num_asked = 0;
    Sharded sharded(
        world, model,
        {.spread = {.strategy = "full_shard"}, .first_values = [&](const std::string& name, at::Tensor into) {
           ++num_asked;
           into.copy_(values.at(name));
         }});
    EXPECT_EQ(num_asked, world.rank() == 0 ? static_cast<int>(values.size()) : 0) << "rank 0's are sent";
    const at::NoGradGuard no_gradients;
    const DoorBatch batch = door_batch(1, 0, 0, at::kFloat);
    UnitRunner runner;
    const at::Tensor expected = plain.loss_sum(batch.x, batch.y, runner);
    const at::Tensor loss = sharded.forward([&] { return model.loss_sum(batch.x, batch.y, sharded); });
    EXPECT_EQ(loss.item<float>(), expected.item<float>());
  });
}

TEST(MetaModel, WithoutValuesIsRefused) {
  run_thread_ranks(1, {}, [](World& world) {
    DoorModel model(at::kMeta);
    EXPECT_THROW(Sharded(world, model, {.spread = {.strategy = "zero3"}}), std::runtime_error);
  });
}

}  // namespace
}  // namespace tessera
