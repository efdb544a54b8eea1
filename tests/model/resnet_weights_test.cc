// Loads files of torchvision's ResNet-50 weights, as torch.save lays them out, into our model.
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/resnet_reference.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/load_weights.h"
#include "weights/weights.h"
#include "weights/write_model_folder.h"

namespace tessera {
namespace {

// torchvision's names, shapes and order (1000 classes); `with_counts`: includes num_batches_tracked, which its oldest
// files lack.
std::vector<NamedTensor> torchvisions_state(bool with_counts) {
  const Json reference = resnet_reference();
  std::vector<NamedTensor> state;
  for (const Json& one : reference["state_dict"]) {
    const std::string name = one[0].get<std::string>();
    const auto shape = one[1].get<std::vector<std::int64_t>>();
    if (!name.ends_with("num_batches_tracked")) {
      state.push_back({name, at::randn(shape)});
    } else if (with_counts) {
      state.push_back({name, at::scalar_tensor(static_cast<std::int64_t>(state.size()), at::kLong)});
    }
  }
  return state;
}

void expect_filled(const ResNet50& model, const Weights& weights) {
  std::size_t num_in_file = 0;
  for (const auto& [name, tensor] : resnet_state(model)) {
    if (weights.find(name) == nullptr) continue;
    EXPECT_TRUE(tensor.equal(tensor_of(weights, name).to(tensor.scalar_type()))) << name;
    ++num_in_file;
  }
  EXPECT_EQ(num_in_file, weights.entries().size());
}

class ResNetWeights : public testing::Test {
 protected:
  Weights saved(const std::vector<NamedTensor>& state) const {
    const std::filesystem::path path = folder_.path() / "resnet50.pth";
    write_weights_file(path, state, {.format = WeightFormat::kTorch});
    return Weights::open(path);
  }
  TestFolder folder_;
};

TEST_F(ResNetWeights, TorchvisionsNamesFillEveryTensor) {
  const Weights weights = saved(torchvisions_state(true));
  ResNet50 model;
  load_weights(model, weights);
  expect_filled(model, weights);
}

TEST_F(ResNetWeights, OldFilesWithoutCountsFillTheRest) {
  const Weights weights = saved(torchvisions_state(false));
  ResNet50 model;
  load_weights(model, weights);
  expect_filled(model, weights);
}

TEST_F(ResNetWeights, AnotherNumberOfClassesIsRefusedByName) {
  const Weights weights = saved(torchvisions_state(true));
  ResNet50 model(200);
  EXPECT_REFUSED(load_weights(model, weights), "fc.weight ([1000, 2048] in the file, [200, 2048] in the model)");
}

// TESSERA_RESNET50_PTH: a file of torchvision's own, such as resnet50-0676ba61.pth.
TEST(RealResNetWeights, TorchvisionsFileLoads) {
  const char* path = std::getenv("TESSERA_RESNET50_PTH");
  if (path == nullptr) GTEST_SKIP() << "TESSERA_RESNET50_PTH is not set";
  const Weights weights = Weights::open(path);
  ResNet50 model;
  load_weights(model, weights);
  expect_filled(model, weights);
}

}  // namespace
}  // namespace tessera
