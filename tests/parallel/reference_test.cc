// The losses of PyTorch's own data parallelism, DistributedDataParallel and FSDP2, from the same weights and data on
// two ranks. tools/references/parallel_losses.py made them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "model/generation.h"
#include "model/language_model.h"
#include "parallel/jobs.h"
#include "parallel/small_resnet.h"
#include "support/pack_padded.h"
#include "support/tensor_file.h"

namespace tessera {
namespace {

constexpr int kNumRanks = 2;
constexpr double kRelative = 1e-5;
constexpr double kNormRelative = 1e-4;  // rounding is larger in a norm than in a mean loss

TensorFile reference(const std::string& model) {
  return read_tensor_file(std::string(TESSERA_TEST_DATA_FOLDER) + "/parallel/" + model + ".safetensors");
}

// Only rank 0 has the reference's weights: the others get them from it.
void load(torch::nn::Module& model, const TensorFile& file, int rank) {
  const at::NoGradGuard no_gradients;
  for (auto& item : model.named_parameters()) {
    rank == 0 ? item.value().copy_(file.at("w." + item.key())) : item.value().zero_();
  }
}

at::Tensor at_place(const at::Tensor& tensor, int step, int micro_step, int rank) {
  return tensor[step][micro_step][rank];
}

class TextReference : public TrainedJob {
 public:
  TextReference(const TensorFile& file, int rank) : tokens_(file.at("tokens")), rank_(rank) {
    model_ = make_language_model(parse_json(file.metadata.at("config").get<std::string>(), "the reference's config"));
    load(*model_, file, rank);
  }
  UnitModel& model() override { return *model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    // [row, position]: negative if the label does not count, 0 past the end
    const at::Tensor tokens = at_place(tokens_, step, micro_step, rank_);
    const at::Tensor labels = at::where(tokens > 0, tokens, at::scalar_tensor(kIgnoredTarget, at::kLong));
    const kernels::LossSum loss = model_->loss(pack_padded(tokens.abs(), tokens.ne(0), labels), runner);
    return {loss.sum, loss.num_counted};
  }

 private:
  at::Tensor tokens_;
  int rank_;
  std::shared_ptr<LanguageModel> model_;
};

class ImageReference : public TrainedJob {
 public:
  ImageReference(const TensorFile& file, int rank)
      : classes_(file.at("classes")), patterns_(file.at("patterns")), rank_(rank) {
    load(model_, file, rank);
    // Fifteen numbers of four bits each.
    const at::Tensor shifts = at::arange(15).mul_(4);
    noise_ = at::bitwise_and(at::bitwise_right_shift(file.at("noise").unsqueeze(1), shifts), 15) - 4;
    std::vector<std::int64_t> shape = classes_.sizes().vec();
    shape.insert(shape.end(), patterns_.sizes().begin() + 1, patterns_.sizes().end());
    noise_ = noise_.reshape(shape);
  }
  UnitModel& model() override { return model_; }
  Loss loss(int step, int micro_step, UnitRunner& runner) override {
    const at::Tensor classes = at_place(classes_, step, micro_step, rank_);
    const at::Tensor images =
        (patterns_.index_select(0, classes) + at_place(noise_, step, micro_step, rank_)).to(at::kFloat) / 4;
    return {at::cross_entropy_loss(model_.forward(images, runner), classes, {}, at::Reduction::Sum), classes.numel()};
  }

 private:
  at::Tensor classes_, patterns_, noise_;
  int rank_;
  SmallResNet model_;
};

// The script's optimizers.
Training how_of(const std::string& model) {
  Training how;
  if (model == "resnet") {
    how.optimizer = choose_optimizer("sgd", {.weight_decay = 1e-4, .momentum = 0.9});
    how.learning_rate = 0.005;
    return how;
  }
  how.optimizer = choose_optimizer("adamw", {.weight_decay = 0.01});
  how.learning_rate = 2e-3;
  how.is_exempt_from_decay = [](const std::string& name) {
    return name.ends_with("bias") || name.find("norm") != std::string::npos || name.ends_with("ln_f.weight");
  };
  return how;
}

struct ReferenceCase {
  const char* name;
  int num_micro_steps;
  double max_norm;  // 0: gradients are not clipped
};
constexpr ReferenceCase kCases[] = {{"plain", 1, 0}, {"clipped", 1, 0.5}, {"accumulated", 4, 0}};

std::vector<double> numbers(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel()};
}

// Rank 0's statistics, which DistributedDataParallel hands to the others.
void expect_buffers(const Trained& found, const TensorFile& file, const std::string& name, const std::string& what) {
  const auto buffers = SmallResNet().named_buffers();
  ASSERT_EQ(found.buffers.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const at::Tensor& expected = file.at(name + ".buffer." + buffers[i].key());
    EXPECT_TRUE(at::allclose(found.buffers[i], expected, 1e-4, 1e-5)) << what << ", " << buffers[i].key();
  }
}

class PyTorchReference : public testing::TestWithParam<std::string> {};

TEST_P(PyTorchReference, EveryRowGivesTheLossesOfDistributedDataParallelAndOfFsdp2) {
  const std::string model = GetParam();
  const TensorFile file = reference(model);
  const MakeJob make_job = [&](int rank, int) -> std::unique_ptr<TrainedJob> {
    if (model == "resnet") return std::make_unique<ImageReference>(file, rank);
    return std::make_unique<TextReference>(file, rank);
  };
  Training how = how_of(model);
  for (const ReferenceCase& tested : kCases) {
    how.num_micro_steps = tested.num_micro_steps;
    how.max_norm = tested.max_norm;
    for (const Row& row : rows_of_table(kNumRanks)) {
      how.row = row;
      const Trained found = train_on_threads({kNumRanks}, make_job, how);
      for (const std::string wrapper : {"ddp", "fsdp2"}) {
        const std::string name = wrapper + "." + tested.name, what = name + " by " + row.name();
        expect_close(found.losses, numbers(file.at(name + ".losses")), kRelative, what + ": losses");
        expect_close(found.norms, numbers(file.at(name + ".norms")), kNormRelative, what + ": norms");
        if (model == "resnet" && wrapper == "ddp") expect_buffers(found, file, name, what);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PyTorchReference, testing::Values("bloom", "gpt", "resnet"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tessera
