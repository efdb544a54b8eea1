// What only the CUDA flavour can do, behind one interface.
//
// The CPU flavour links only torch_cpu and c10. If libtessera_cuda.so is beside libtessera.so and the machine has a
// GPU, the first call loads it: it brings torch_cuda (which registers itself with torch) and this object. So one
// program serves nodes with and without GPUs, and everything above stays free of CUDA headers.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

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
// There are GPUs, but this build cannot use them: the CPU is then used only if it is asked for.
bool gpus_are_unfit();

// What libtessera_cuda.so exports under this name.
inline constexpr const char* kGpuSupportSymbol = "tessera_gpu_support";
using GpuSupportFunction = const GpuSupport* (*)();

// What the CUDA flavour was compiled with: {"13.0", {80, 90}}.
struct CudaBuild {
  std::string cuda;
  std::vector<int> architectures;  // ascending; newer GPUs translate the last one's code when they load it

  std::string architectures_text() const;  // "8.0, 9.0"
};
// Null: this build has no CUDA flavour.
const CudaBuild* cuda_build();
// "CUDA 13.0, for GPUs of compute capability 8.0, 9.0 and newer"; empty if there is none.
std::string cuda_flavour_text();

// Why one of these GPUs cannot be used, and what can be done; empty if all fit.
std::string unfit_gpu_text(const CudaBuild& build, const std::vector<GpuInfo>& gpus);
// Why the driver, which supports CUDA up to `driver` ("12.2"), cannot be used; empty if it can. `names`: of the GPUs,
// as the driver lists them.
std::string unfit_driver_text(const CudaBuild& build, const std::string& driver, const std::vector<std::string>& names);

// Two ranks on one GPU: allowed only if it was asked for. (NCCL refuses it; through MPI it works, at half the memory
// and speed each.)
// Every rank that computes on a GPU tells the others which one, by the store, and reads those of its own host. GPUs are
// compared by what they are, not by their index: with one visible GPU per rank (srun --gpus-per-task 1) all are cuda:0.
// Throws UsageError, on every rank of a host, if two of its ranks have the same. `hosts`: by rank.
void refuse_shared_gpus(c10d::Store& store, int rank, const std::vector<std::string>& hosts, const std::string& gpu);

}  // namespace tessera
