// The GPU of these tests, and the CUDA flavour loaded before the first of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "comm/gpu_support.h"

namespace tessera {

inline const at::Device kGpu(at::kCUDA, 0);

class Flavour : public testing::Environment {
 public:
  void SetUp() override {
    ASSERT_NE(gpu_support(), nullptr) << no_gpu_reason();
    gpu_support()->set_device(0);
  }
};
inline const auto* const kFlavour = testing::AddGlobalTestEnvironment(new Flavour);

}  // namespace tessera
