#include "comm/gpu_support.h"

#include <gtest/gtest.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "core/error.h"
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

// What each rank is told; empty: it may go on.
std::vector<std::string> refusals(const std::vector<std::string>& hosts, const std::vector<std::string>& gpus) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> messages(hosts.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        refuse_shared_gpus(*store, static_cast<int>(rank), hosts, gpus[rank]);
      } catch (const UsageError& error) {
        messages[rank] = error.what();
      }
    });
  }
  ranks.clear();  // joins
  return messages;
}

TEST(GpuSharing, FourRanksOnTwoGpusAreRefusedOnAllOfThem) {
  const auto messages = refusals({"n1", "n1", "n1", "n1"}, {"H200 A", "H200 B", "H200 A", "H200 B"});
  for (const std::string& message : messages) {
    EXPECT_EQ(
        message,
        "ranks 0, 2 on host n1 would share one GPU (H200 A): the 4 ranks there see 2 GPUs; start one rank per GPU, "
        "or give --share_gpus");
  }
}

TEST(GpuSharing, AGpuPerRankIsRight) {
  const std::vector<std::string> none(4);
  EXPECT_EQ(refusals({"n1", "n1", "n1", "n1"}, {"A", "B", "C", "D"}), none);
  EXPECT_EQ(refusals({"n1", "n2", "n1", "n2"}, {"A", "A", "B", "B"}), none);  // other hosts' are others
}

}  // namespace

}  // namespace tessera
