// Attention by mma.sync, which GPUs other than Hopper's run, in place of this GPU's own.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "comm/gpu_support.h"
#include "kernels/cuda_kernels.h"
#include "kernels/cuda_tensors.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {

void attention_forward_of_ampere(const CudaAttention& attention);
void attention_backward_of_ampere(const CudaAttention& attention);
const char* error_of_ampere();

namespace {

int num_calls = 0;

void forward_of_ampere(const std::array<at::Tensor, 3>& qkv, const PackedAttention& how, const at::Tensor& result,
                       const at::Tensor& logsumexp) {
  ++num_calls;
  attention_forward_of_ampere(attention_of(qkv, how, result, logsumexp));
  EXPECT_STREQ(error_of_ampere(), "no error");
}

void backward_of_ampere(const at::Tensor& grad, const std::array<at::Tensor, 3>& qkv, const PackedAttention& how,
                        const at::Tensor& result, const at::Tensor& logsumexp,
                        const std::array<at::Tensor, 3>& grad_qkv) {
  ++num_calls;
  const at::Tensor delta = at::empty_like(logsumexp);
  CudaAttention a = attention_of(qkv, how, result, logsumexp);
  a.grad = in(grad);
  a.delta = floats(delta);
  for (std::size_t i = 0; i < 3; ++i) a.grad_parts[i] = out(grad_qkv[i]);
  attention_backward_of_ampere(a);
  EXPECT_STREQ(error_of_ampere(), "no error");
}

class AttentionOfAmpere : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(gpu_support(), nullptr) << no_gpu_reason();
    if (at::cuda::getDeviceProperties(0)->major != 9) GTEST_SKIP() << "this GPU has no other way";
    own_ = &cuda_kernels();
    replaced_ = *own_;
    replaced_.attention_forward = forward_of_ampere;
    replaced_.attention_backward = backward_of_ampere;
    register_cuda_kernels(replaced_);
  }
  void TearDown() override {
    if (own_ != nullptr) register_cuda_kernels(*own_);
  }
  void check(const std::vector<std::int64_t>& lengths, std::int64_t num_heads) const {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      for (const std::int64_t D : {64, 80, 96, 128}) {
        for (const bool alibi : {true, false}) {
          const int before = num_calls;
          check_attention({fmt::format("heads of {}", D), lengths, num_heads, D, alibi, false}, type, gpu_,
                          attention_of_heads);
          EXPECT_GE(num_calls, before + 2) << "another kernel ran";
        }
      }
    }
  }
  const at::Device gpu_{at::kCUDA, 0};
  const CudaKernels* own_ = nullptr;
  CudaKernels replaced_{};
};

TEST_F(AttentionOfAmpere, EqualsThePlainOneOverAFewTiles) {
  check({1, 130, 63}, 1);
}

TEST_F(AttentionOfAmpere, EqualsThePlainOneForEveryLength) {
  check({1, 63, 64, 65, 0, 128, 384, 385}, 3);
}

}  // namespace
}  // namespace tessera::kernels
