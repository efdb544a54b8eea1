// Twenty steps of transformers' Trainer on each family of decoders: the same losses and gradient norms, from the same
// weights and rows. tools/references/decoders.py made them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "core/json.h"
#include "model/model_checks.h"
#include "parallel/training.h"
#include "support/pack_padded.h"
#include "train/schedule.h"

namespace tessera {
namespace {

// One row per step, as the Trainer took them.
class TrainerSteps : public TrainedJob {
 public:
  explicit TrainerSteps(const TensorFile& file)
      : ids_(file.at("ids_right")), mask_(file.at("mask_right")), rows_(file.at("train_rows")) {
    model_ = model_of(file, at::kCPU);
    model_->train();
  }
  UnitModel& model() override { return *model_; }
  Loss loss(int step, int, UnitRunner& runner) override {
    const at::Tensor row = rows_.slice(0, step, step + 1);
    const at::Tensor ids = ids_.index_select(0, row), mask = mask_.index_select(0, row);
    const at::Tensor labels = at::where(mask.to(at::kBool), ids, at::scalar_tensor(kIgnoredTarget, at::kLong));
    const kernels::LossSum loss = model_->loss(pack_padded(ids, mask, labels), runner);
    return {loss.sum, loss.num_counted};
  }

 private:
  at::Tensor ids_, mask_, rows_;
  std::shared_ptr<LanguageModel> model_;
};

Training training_of(const TensorFile& file) {
  const Json arguments = parse_json(file.metadata.at("training").get<std::string>(), "the reference's training");
  Training how;
  how.row = {"single"};
  how.num_steps = arguments.at("max_steps");
  how.optimizer = choose_optimizer("adamw", {.weight_decay = arguments.at("weight_decay")});
  how.max_norm = arguments.at("max_grad_norm");
  const Schedule schedule({.kind = arguments.at("lr_scheduler_type"),
                           .learning_rate = arguments.at("learning_rate"),
                           .total_steps = how.num_steps});
  how.learning_rate_of = [schedule](int step) { return schedule.at(step); };
  std::set<std::string> vectors;  // norms and biases
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with("w.") && tensor.dim() <= 1) vectors.insert(name.substr(2));
  }
  how.is_exempt_from_decay = [vectors](const std::string& name) { return vectors.contains(name); };
  return how;
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kDouble);
  return {numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel()};
}

class TrainerReferenceOf : public testing::TestWithParam<ModelCase> {
 protected:
  Trained trained(const Training& how) const {
    const TensorFile file = model_reference(GetParam().name);
    return train_on_threads(
        {1}, [&](int, int) { return std::make_unique<TrainerSteps>(file); }, how);
  }
};

TEST_P(TrainerReferenceOf, TwentyStepsHaveTheLossesOfTheTrainer) {
  const TensorFile file = model_reference(GetParam().name);
  const Trained found = trained(training_of(file));
  expect_close(found.losses, numbers_of(file.at("losses")), 5e-5, "losses");
  expect_close(found.norms, numbers_of(file.at("grad_norms")), 5e-4, "norms");
}

// With exact float32 masters the roundings of bf16 do not add up over the steps.
TEST_P(TrainerReferenceOf, InBf16TheyDifferByItsRounding) {
  const TensorFile file = model_reference(GetParam().name);
  Training how = training_of(file);
  how.type = at::kBFloat16;
  expect_close(trained(how).losses, numbers_of(file.at("losses")), 0x1p-7, "losses");
}

INSTANTIATE_TEST_SUITE_P(All, TrainerReferenceOf, testing::ValuesIn(decoder_cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace tessera
