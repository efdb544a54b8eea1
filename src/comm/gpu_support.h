// What only the CUDA flavour can do, behind one interface.
//
// The CPU flavour links only torch_cpu and c10. If libtessera_cuda.so is beside libtessera.so and the machine has a
// GPU, the first call loads it: it brings torch_cuda (which registers itself with torch) and this object. So one
// program serves nodes with and without GPUs, and everything above stays free of CUDA headers.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace tessera {

struct GpuInfo {
  std::string name;
  std::string compute_capability;  // "9.0"
  std::int64_t memory_bytes = 0;
  std::string pci_address{};  // "00000000:1b:00.0"
  std::string uuid{};         // hexadecimal; a part of a GPU (MIG) has its own
};

class GpuSupport {
 public:
  virtual ~GpuSupport() = default;
  virtual int num_gpus() const = 0;
  virtual GpuInfo info(int index) const = 0;
  virtual std::string cuda_version() const = 0;    // of the runtime
  virtual std::string driver_version() const = 0;  // the newest CUDA that the driver supports
  virtual std::string nccl_version() const = 0;
  virtual bool can_access_peer(int from, int to) const = 0;
  virtual void set_device(int index) const = 0;
  virtual void synchronize() const = 0;  // the whole current device
  // `device` is this rank's GPU, by its index.
  virtual c10::intrusive_ptr<c10d::Backend> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                                      int device, std::chrono::milliseconds timeout) const = 0;
};

// Null if there is no usable GPU; `no_gpu_reason()` then says why. Loads the library on the first call; thread-safe.
const GpuSupport* gpu_support();
const std::string& no_gpu_reason();
// There are GPUs, but this build cannot use them (gpu_fitness.h): nobody wants the CPU instead without being asked.
bool gpus_are_unfit();

// What libtessera_cuda.so exports under this name.
inline constexpr const char* kGpuSupportSymbol = "tessera_gpu_support";
using GpuSupportFunction = const GpuSupport* (*)();

}  // namespace tessera
