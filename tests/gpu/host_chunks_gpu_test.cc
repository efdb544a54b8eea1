// What a file gets of a GPU's tensors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/flavour.h"
#include "state/state_file.h"

namespace tessera {
namespace {

std::string bytes_by_chunks(HostChunks& chunks, const kernels::SplitFloats& values) {
  std::string bytes;
  chunks.for_each(values, [&](std::string_view chunk) { bytes += chunk; });
  return bytes;
}

std::string bytes_on_host(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu();
  return {static_cast<const char*>(host.const_data_ptr()), host.nbytes()};
}

TEST(HostChunksOnGpu, GiveEveryByteInOrder) {
  HostChunks chunks(kGpu);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kLong, at::kBool}) {
    // A chunk is 32 MiB: less than one, one, and some with a rest.
    for (const std::int64_t bytes : {0, 8, 32 << 20, (100 << 20) + 24}) {
      const std::int64_t numel = bytes / static_cast<std::int64_t>(c10::elementSize(type));
      const at::Tensor values = at::randint(0, 100, {numel}, at::dtype(at::kInt).device(kGpu)).to(type);
      EXPECT_TRUE(bytes_by_chunks(chunks, {values}) == bytes_on_host(values)) << bytes << " bytes of " << type;
    }
  }
}

TEST(HostChunksOnGpu, JoinHalvesOfEitherPlace) {
  const at::Tensor numbers = at::randn({(9 << 20) + 5}, at::device(kGpu)), copies = numbers.to(at::kBFloat16);
  const kernels::SplitFloats halves{copies, kernels::remainder_of(numbers, copies)};
  const kernels::SplitFloats on_host{copies.cpu(), kernels::remainder_of(numbers, copies, at::kCPU)};
  HostChunks chunks(kGpu);
  const std::string right = bytes_on_host(halves.joined());
  EXPECT_TRUE(bytes_by_chunks(chunks, halves) == right);
  EXPECT_TRUE(bytes_by_chunks(chunks, on_host) == right);
}

}  // namespace
}  // namespace tessera
