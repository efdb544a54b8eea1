// The CUDA flavour's side of gpu_support.h: compiled only into libtessera_cuda.so.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "comm/gpu_support.h"

namespace tessera {
namespace {

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (const char byte : uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

class CudaSupport : public GpuSupport {
 public:
  int num_gpus() const override { return c10::cuda::device_count(); }

  GpuInfo info(int index) const override {
    const cudaDeviceProp* properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
    return {
        properties->name, fmt::format("{}.{}", properties->major, properties->minor),
        static_cast<std::int64_t>(properties->totalGlobalMem),
        fmt::format("{:08x}:{:02x}:{:02x}.0", properties->pciDomainID, properties->pciBusID, properties->pciDeviceID),
        uuid_text(properties->uuid)};
  }

  std::string cuda_version() const override {
    int version = 0;
    C10_CUDA_CHECK(cudaRuntimeGetVersion(&version));
    return cuda_text(version);
  }

  std::string driver_version() const override {
    int version = 0;
    C10_CUDA_CHECK(cudaDriverGetVersion(&version));
    return cuda_text(version);
  }

  std::string nccl_version() const override { return c10d::getNcclVersion(); }

  bool can_access_peer(int from, int to) const override {
    int can = 0;
    C10_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, from, to));
    return can != 0;
  }

  void set_device(int index) const override { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }
  void synchronize() const override { c10::cuda::device_synchronize(); }

  c10::intrusive_ptr<c10d::Backend> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank, int size, int device,
                                              std::chrono::milliseconds timeout) const override {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    // Our watchdog says which rank is to blame; NCCL's own fires later, as a fallback.
    options->timeout = timeout + std::chrono::seconds(30);
    auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(std::move(store), rank, size, options);
    backend->setBoundDeviceId(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device)));
    return backend;
  }
};

}  // namespace
}  // namespace tessera

extern "C" const tessera::GpuSupport* tessera_gpu_support() {
  static const tessera::CudaSupport support;
  return &support;
}
