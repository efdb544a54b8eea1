#include "model/resnet.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "core/error.h"
#include "model/run_modes.h"
#include "support/resnet_reference.h"
#include "support/sha256.h"

namespace tessera {
namespace {

double largest_difference(const at::Tensor& ours, const Json& theirs) {
  return (ours.detach().to(at::kDouble) - resnet_rows(theirs)).abs().max().item<double>();
}

// The norm and four samples, each within `tolerance` of the norm.
void expect_like(const at::Tensor& ours, const Json& theirs, double tolerance, const std::string& name) {
  const at::Tensor flat = ours.detach().contiguous().flatten().to(at::kDouble);
  const double norm = theirs["norm"].get<double>(), allowed = tolerance * std::max(norm, 1e-3);
  EXPECT_NEAR(flat.norm().item<double>(), norm, allowed) << name;
  for (std::int64_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(flat[k * (flat.numel() - 1) / 3].item<double>(), theirs["samples"][static_cast<std::size_t>(k)],
                allowed)
        << name << " sample " << k;
  }
}

at::Tensor loss_of(const at::Tensor& logits, const Json& reference) {
  return at::cross_entropy_loss(logits, at::tensor(reference["labels"].get<std::vector<std::int64_t>>()));
}

struct Tolerance {
  double logits, gradients, buffers;
};

void expect_torchvisions(at::ScalarType type, const char* references, const Tolerance& tolerance) {
  const Json reference = resnet_reference();
  const Json& expected = reference[references];
  ResNet50 model(10);
  fill_by_formula(model);
  model.to(type);
  if (type == at::kDouble) fill_by_formula(model);  // the formula's own values, not their rounding to float
  const at::Tensor images = resnet_images().to(type);

  model.eval();
  {
    const at::NoGradGuard no_grad;
    EXPECT_LT(largest_difference(model.forward(images), expected["eval_logits"]), tolerance.logits);
  }
  model.train();
  const at::Tensor logits = model.forward(images);
  EXPECT_LT(largest_difference(logits, expected["train_logits"]), tolerance.logits);
  const at::Tensor loss = loss_of(logits, reference);
  EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), tolerance.logits);
  loss.backward();
  ASSERT_EQ(model.named_parameters().size(), expected["gradients"].size());
  for (const auto& one : model.named_parameters()) {
    expect_like(one.value().grad(), expected["gradients"][one.key()], tolerance.gradients, one.key());
  }
  ASSERT_EQ(model.named_buffers().size(), expected["buffers"].size());
  for (const auto& one : model.named_buffers()) {
    expect_like(one.value(), expected["buffers"][one.key()], tolerance.buffers, one.key());
  }
}

// In double precision, rounding hides nothing.
TEST(ResNet50, ComputesWhatTorchvisionComputesInDouble) {
  expect_torchvisions(at::kDouble, "float64", {1e-10, 1e-10, 1e-12});
}

// In float the gradients of four images through 53 batch norms have errors of 0.3 % against double (by the references,
// torchvision's own do too): the comparison is between two such results.
TEST(ResNet50, ComputesWhatTorchvisionComputesInFloat) {
  expect_torchvisions(at::kFloat, "float32", {1e-4, 1e-2, 1e-5});
}

// AMP: float32 parameters and images of a half type. Here every convolution is in that type and every norm in float32,
// so that logits, gradients and statistics have autocast's bits.
TEST(ResNet50, HalfImagesGiveWhatAutocastGives) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    ResNet50 ours(10), theirs(10);
    fill_by_formula(ours);
    fill_by_formula(theirs);
    const at::Tensor images =
        resnet_images().to(at::kFloat).slice(0, 0, 2).slice(2, 0, 32).slice(3, 0, 32).contiguous();
    const at::Tensor our_logits = ours.forward(images.to(type));
    at::autocast::set_autocast_dtype(at::kCPU, type);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const at::Tensor their_logits = theirs.forward(images);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    EXPECT_TRUE(our_logits.equal(their_logits)) << type;
    EXPECT_EQ(our_logits.scalar_type(), type);
    constexpr double kSmall = 1e-4;  // float16 ends at 65504, and infinities cannot be compared
    (our_logits.to(at::kFloat).square().sum() * kSmall).backward();
    (their_logits.to(at::kFloat).square().sum() * kSmall).backward();
    for (const auto& one : ours.named_parameters()) {
      const at::Tensor& gradient = one.value().grad();
      EXPECT_EQ(gradient.scalar_type(), at::kFloat) << one.key();
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << type << one.key();
      EXPECT_TRUE(gradient.equal(theirs.named_parameters()[one.key()].grad())) << type << one.key();
    }
    for (const auto& one : ours.named_buffers()) {
      EXPECT_TRUE(one.value().equal(theirs.named_buffers()[one.key()])) << type << one.key();
    }
  }
}

TEST(ResNet50, HasTorchvisionsNamesShapesAndOrder) {
  const Json reference = resnet_reference();
  const auto state = resnet_state(ResNet50());
  ASSERT_EQ(state.size(), reference["state_dict"].size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].first, reference["state_dict"][i][0].get<std::string>());
    EXPECT_EQ(Json(state[i].second.sizes().vec()), reference["state_dict"][i][1]) << state[i].first;
  }
}

TEST(ResNet50, TheSameSeedGivesTorchvisionsWeights) {
  const Json reference = resnet_reference();
  torch::manual_seed(0);
  const ResNet50 model(200);
  std::int64_t numel = 0;
  for (const auto& one : model.named_parameters()) {
    const Json& expected = reference["seed_0"][one.key()];
    expect_like(one.value(), expected, 1e-6, one.key());
#if defined(__aarch64__)  // where the references were made; elsewhere the last bits of logarithms differ
    const std::string_view bytes(static_cast<const char*>(one.value().const_data_ptr()), one.value().nbytes());
    EXPECT_EQ(sha256_hex(bytes).substr(0, 16), expected["sha256"].get<std::string>()) << one.key();
#endif
    numel += one.value().numel();
  }
  EXPECT_EQ(numel, 23'917'832);
}

TEST(ResNet50, WeightsHaveTorchvisionsDistributions) {
  torch::manual_seed(123);
  const ResNet50 model(200);
  for (const auto& one : model.named_parameters()) {
    const at::Tensor& w = one.value();
    const double n = static_cast<double>(w.numel());
    if (w.dim() == 4) {  // normal, deviation sqrt(2 / fan_out)
      const double deviation = std::sqrt(2.0 / static_cast<double>(w.size(0) * w.size(2) * w.size(3)));
      EXPECT_NEAR(w.mean().item<double>(), 0, 5 * deviation / std::sqrt(n)) << one.key();
      EXPECT_NEAR(w.std().item<double>(), deviation, 5 * deviation / std::sqrt(2 * n)) << one.key();
      EXPECT_GT(w.abs().max().item<double>(), 3 * deviation) << one.key();
    } else if (one.key().starts_with("fc.")) {  // uniform, bound 1 / sqrt(inputs)
      const double bound = 1 / std::sqrt(2048.0);
      EXPECT_LE(w.abs().max().item<double>(), bound) << one.key();
      EXPECT_GT(w.abs().max().item<double>(), 0.95 * bound) << one.key();
      EXPECT_NEAR(w.mean().item<double>(), 0, 5 * bound / std::sqrt(3 * n)) << one.key();
    } else {
      EXPECT_TRUE((w == (one.key().ends_with("weight") ? 1 : 0)).all().item<bool>()) << one.key();
    }
  }
}

class Recorder : public UnitRunner {
 public:
  at::Tensor run(const Unit& unit, const at::Tensor& input, const Body& body) override {
    at::Tensor output = body(input);
    names.push_back(unit.name);
    all_channels_last = all_channels_last && output.is_contiguous(at::MemoryFormat::ChannelsLast);
    return output;
  }
  std::vector<std::string> names;
  bool all_channels_last = true;
};

TEST(ResNet50, RunsItsSixteenUnitsInOrderAndChannelsLast) {
  ResNet50 model(10);
  Recorder recorder;
  const at::NoGradGuard no_grad;
  EXPECT_EQ(model.forward(resnet_images().to(at::kFloat), recorder).sizes().vec(), (std::vector<std::int64_t>{4, 10}));
  ASSERT_EQ(model.units().size(), 16u);
  std::vector<std::string> listed;
  for (const Unit& unit : model.units()) {
    listed.push_back(unit.name);
    EXPECT_EQ(unit.kind, "Bottleneck");
    EXPECT_EQ(unit.module, model.named_modules("", false)[unit.name].get());
  }
  EXPECT_EQ(recorder.names, listed);
  EXPECT_EQ(listed.front(), "layer1.0");
  EXPECT_EQ(listed.back(), "layer4.2");
  EXPECT_TRUE(recorder.all_channels_last);
}

TEST(ResNet50, TheLayoutOfTheImagesDoesNotMatter) {
  ResNet50 model(10);
  model.eval();
  const at::NoGradGuard no_grad;
  const at::Tensor images = resnet_images().to(at::kFloat);
  EXPECT_TRUE(model.forward(images).equal(model.forward(images.contiguous(at::MemoryFormat::ChannelsLast))));
}

// Recomputed blocks give the same bits in gradients and statistics as blocks computed once.
TEST(ResNet50, CheckpointingChangesNeitherGradientsNorStatistics) {
  const Json reference = resnet_reference();
  ResNet50 plain(10), checkpointed(10);
  fill_by_formula(plain);
  fill_by_formula(checkpointed);
  const at::Tensor images = resnet_images().to(at::kFloat);
  loss_of(plain.forward(images), reference).backward();
  UnitRunner inner;
  CheckpointRunner runner(inner);
  loss_of(checkpointed.forward(images, runner), reference).backward();
  const auto parameters = checkpointed.named_parameters(), buffers = checkpointed.named_buffers();
  for (const auto& one : plain.named_parameters()) {
    EXPECT_TRUE(one.value().grad().equal(parameters[one.key()].grad())) << one.key();
  }
  for (const auto& one : plain.named_buffers()) EXPECT_TRUE(one.value().equal(buffers[one.key()])) << one.key();
}

// One value has no variance: the statistics would be NaN for the rest of the run.
TEST(ResNet50, OneValueAChannelCannotTrain) {
  ResNet50 model(2);
  const at::Tensor image = at::ones({1, 3, 32, 32});  // 1 x 1 in layer4
  EXPECT_THROW(model.forward(image), Error);
  model.eval();
  EXPECT_TRUE(model.forward(image).isfinite().all().item<bool>());
  model.train();
  model.forward(at::ones({2, 3, 32, 32}));
  for (const auto& one : model.named_buffers()) EXPECT_TRUE(one.value().isfinite().all().item<bool>()) << one.key();
}

TEST(ResNet50, WrongShapesAreRefused) {
  EXPECT_THROW(ResNet50(0), UsageError);
  ResNet50 model(2);
  EXPECT_THROW(model.forward(at::zeros({1, 1, 64, 64})), Error);
  EXPECT_THROW(model.forward(at::zeros({3, 64, 64})), Error);
}

}  // namespace
}  // namespace tessera
