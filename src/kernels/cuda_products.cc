#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "kernels/cuda_tensors.h"

namespace tessera::kernels {
namespace {

void check(cublasStatus_t status, const CudaProduct& p) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(fmt::format("cuBLASLt cannot multiply [{}, {}] by [{}, {}]: {}", p.m, p.k, p.k, p.n,
                          cublasLtGetStatusString(status)));
}

// What decides about the algorithm.
using Key = std::array<std::int64_t, 5>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::int64_t part : key) hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x100000001b3;  // FNV-1a
    return hash ^ hash >> 32;
  }
};

// In bytes, of all addresses together; at most 16, which every algorithm takes, so that buffers which happen to lie
// better do not change the algorithm and with it the bits.
std::int64_t alignment_of(const CudaProduct& p) {
  std::uintptr_t bits = 16;
  for (const void* address : {p.a, p.b, static_cast<const void*>(p.out), p.bias, p.plus}) {
    bits |= reinterpret_cast<std::uintptr_t>(address);
  }
  return std::int64_t{1} << std::countr_zero(bits);
}

Key key_of(const CudaProduct& p, std::int64_t alignment) {
  const std::int64_t kinds = (p.type == NumberType::kBFloat16 ? 1 : 0) | (p.a_is_transposed ? 2 : 0) |
                             (p.b_is_transposed ? 4 : 0) | (p.bias != nullptr ? 8 : 0) | (p.plus != nullptr ? 16 : 0);
  return {p.m, p.n, p.k, kinds << 16 | alignment, c10::cuda::current_device()};
}

// cuBLAS stores columns: it computes the transposed result from b and a, each of which it sees transposed.
struct Plan {
  cublasLtMatmulDescOpaque_t how;
  cublasLtMatrixLayoutOpaque_t b, a, out;
  cublasLtMatmulAlgo_t algorithm;
};

template <typename Value>
void set(Plan& plan, cublasLtMatmulDescAttributes_t name, const Value& value, const CudaProduct& p) {
  check(cublasLtMatmulDescSetAttribute(&plan.how, name, &value, sizeof value), p);
}

Plan make_plan(const CudaProduct& p, std::int64_t alignment) {
  Plan plan;
  const cudaDataType_t type = p.type == NumberType::kBFloat16 ? CUDA_R_16BF : CUDA_R_16F;
  check(cublasLtMatmulDescInit(&plan.how, CUBLAS_COMPUTE_32F, CUDA_R_32F), p);
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, p.b_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p);
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, p.a_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p);
  if (p.bias != nullptr) {
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS, p);
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, p);
  }
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& of, std::int64_t rows, std::int64_t columns) {
    check(cublasLtMatrixLayoutInit(&of, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   rows),
          p);
  };
  p.b_is_transposed ? layout(plan.b, p.k, p.n) : layout(plan.b, p.n, p.k);
  p.a_is_transposed ? layout(plan.a, p.m, p.k) : layout(plan.a, p.k, p.m);
  layout(plan.out, p.n, p.m);

  cublasLtMatmulPreferenceOpaque_t wish;
  check(cublasLtMatmulPreferenceInit(&wish), p);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(&wish, name, &value, sizeof value), p);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(at::cuda::getCUDABlasLtWorkspaceSize()));
  // Never in the half type, as in place.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(name, static_cast<std::uint32_t>(alignment));
  }
  cublasLtMatmulHeuristicResult_t found{};
  int num_found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(at::cuda::getCurrentCUDABlasLtHandle(), &plan.how, &plan.b, &plan.a, &plan.out,
                                       &plan.out, &wish, 1, &found, &num_found),
        p);
  check(num_found > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED, p);
  plan.algorithm = found.algo;
  return plan;
}

// A copy: each call sets its own bias.
Plan plan_of(const CudaProduct& p) {
  static std::mutex mutex;
  static std::unordered_map<Key, Plan, KeyHash> plans;
  constexpr std::size_t kMostPlans = 8192;  // 5 MB; a dozen for each number of tokens
  const std::int64_t alignment = alignment_of(p);
  const Key key = key_of(p, alignment);
  const std::lock_guard lock(mutex);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= kMostPlans) plans.clear();
  return plans.emplace(key, make_plan(p, alignment)).first->second;
}

}  // namespace

void multiply(const CudaProduct& p) {
  Plan plan = plan_of(p);
  if (p.bias != nullptr) set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, p);
  const float one = 1, of_plus = p.plus == nullptr ? 0 : 1;
  check(cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), &plan.how, &one, p.b, &plan.b, p.a, &plan.a, &of_plus,
                       p.plus == nullptr ? p.out : p.plus, &plan.out, p.out, &plan.out, &plan.algorithm,
                       at::cuda::getCUDABlasLtWorkspace(), at::cuda::getCUDABlasLtWorkspaceSize(),
                       c10::cuda::getCurrentCUDAStream().stream()),
        p);
}

}  // namespace tessera::kernels
