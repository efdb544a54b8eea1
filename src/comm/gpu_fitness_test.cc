#include "comm/gpu_fitness.h"

#include <gtest/gtest.h>

#include "support/contains.h"

namespace tessera {
namespace {

const CudaBuild kBuild{"13.0", {80, 90}};

GpuInfo gpu(const std::string& name, const std::string& capability) {
  return {name, capability, std::int64_t{16} << 30};
}

TEST(GpuFitness, TakesWhatItHasCodeForAndNewer) {
  EXPECT_EQ(unfit_gpu_text(kBuild, {gpu("A100", "8.0"), gpu("L40", "8.9"), gpu("H200", "9.0"), gpu("B200", "10.0")}),
            "");
  EXPECT_EQ(kBuild.architectures_text(), "8.0, 9.0");
}

TEST(GpuFitness, NamesAV100AndTheWayThatWorks) {
  const std::string text = unfit_gpu_text(kBuild, {gpu("H200", "9.0"), gpu("Tesla V100-SXM2-32GB", "7.0")});
  EXPECT_TRUE(contains(text, "GPU 1 is a Tesla V100-SXM2-32GB of compute capability 7.0")) << text;
  EXPECT_TRUE(contains(text, "has code for 8.0, 9.0 and newer")) << text;
  EXPECT_TRUE(contains(text, "torch of CUDA 12.6 and nvcc 12 for 70, 80, 90")) << text;
}

TEST(GpuFitness, OffersNoWayForAGpuThatIsTooOldForAnyBuild) {
  const std::string text = unfit_gpu_text(kBuild, {gpu("Tesla P100", "6.0")});
  EXPECT_TRUE(contains(text, "it is too old for Tessera")) << text;
  EXPECT_FALSE(contains(text, "12.6")) << text;
}

TEST(GpuFitness, AGpuThatCuda13KnowsNeedsOnlyItsArchitecture) {
  const std::string text = unfit_gpu_text(kBuild, {gpu("Tesla T4", "7.5")});
  EXPECT_TRUE(contains(text, "-DCMAKE_CUDA_ARCHITECTURES=75")) << text;
  EXPECT_FALSE(contains(text, "12.6")) << text;
}

TEST(GpuFitness, NamesADriverThatIsTooOldWithItsGpus) {
  EXPECT_EQ(unfit_driver_text(kBuild, "13.0", {}), "");
  EXPECT_EQ(unfit_driver_text(kBuild, "13.2", {}), "");
  EXPECT_TRUE(contains(unfit_driver_text(kBuild, "0.0", {}), "--nv"));
  const std::string text = unfit_driver_text(kBuild, "12.2", {"Tesla V100-SXM2-32GB"});
  EXPECT_TRUE(contains(text, "the driver of Tesla V100-SXM2-32GB supports CUDA up to 12.2")) << text;
  EXPECT_TRUE(contains(text, "built for CUDA 13.0")) << text;
}

}  // namespace
}  // namespace tessera
