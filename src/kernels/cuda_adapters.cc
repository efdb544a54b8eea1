// The CUDA implementation of cuda_kernels.h: converts tensors to pointers and passes the current stream. Compiled only
// into libtessera_cuda.so.
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

#include "kernels/cuda_kernels.h"
#include "kernels/cuda_tensors.h"
#include "kernels/flat_buffers.h"

namespace tessera::kernels {
namespace {

bool all_aligned(std::initializer_list<const at::Tensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const auto* tensor) { return is_aligned(in(*tensor)); });
}

CudaRows rows_of(const at::Tensor& x, std::initializer_list<const at::Tensor*> tensors) {
  return {type_of(x), x.numel() / x.size(-1), x.size(-1), all_aligned(tensors), stream_of(x)};
}

at::Tensor room(const at::Tensor& x, std::int64_t numel) {
  return at::empty({numel}, x.options().dtype(at::kFloat));
}

at::Tensor room_for_sums(const at::Tensor& x, const CudaRows& rows, std::int64_t num_sums) {
  return room(x, num_sums * num_row_blocks(rows.num_rows) * rows.C);
}

void check_launch() {
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void bias_gelu_forward(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& result) {
  const c10::cuda::CUDAGuard guard(x.device());
  bias_gelu_forward_cuda(rows_of(x, {&x, &bias, &result}), in(x), in(bias), out(result));
  check_launch();
}

void bias_gelu_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& bias, const at::Tensor& grad_x,
                        const at::Tensor& grad_bias) {
  const c10::cuda::CUDAGuard guard(x.device());
  const auto rows = rows_of(x, {&grad, &x, &bias, &grad_x});
  const auto partial = room_for_sums(x, rows, 1);
  bias_gelu_backward_cuda(rows, in(grad), in(x), in(bias), out(grad_x), nullptr, out(grad_bias), floats(partial));
  check_launch();
}

void layer_norm_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        const at::Tensor& bias, double eps, const at::Tensor& sum, const at::Tensor& result,
                        const at::Tensor& mean, const at::Tensor& inverse_deviation) {
  const c10::cuda::CUDAGuard guard(x.device());
  const auto rows = rows_of(x, {&x, &residual, &weight, &bias, &sum, &result});
  layer_norm_forward_cuda(rows, in(x), in(residual), in(weight), in(bias), static_cast<float>(eps), out(sum),
                          out(result), floats(mean), floats(inverse_deviation));
  check_launch();
}

void layer_norm_backward(const NormBackward& norm, const NormGradients& results) {
  const c10::cuda::CUDAGuard guard(norm.x.device());
  const auto rows = rows_of(norm.x, {&norm.grad, &norm.grad_sum, &norm.x, &norm.weight, &results.x});
  const auto partial = room_for_sums(norm.x, rows, 2);
  layer_norm_backward_cuda(rows, {in(norm.grad), in(norm.grad_sum), in(norm.x), in(norm.weight), nullptr,
                                  floats(norm.mean), floats(norm.inverse_deviation), out(results.x),
                                  out(results.weight), out(results.bias), nullptr, nullptr, nullptr, floats(partial)});
  check_launch();
}

// `partial` becomes the room for the blocks' sums: a few blocks for each multiprocessor, fewer where a thread would
// have little to do.
CudaBatchNorm batch_norm_of(const BatchNormPass& pass, at::Tensor& partial) {
  constexpr std::int64_t kBlocksAProcessor = 6, kPacksAThread = 8;
  const auto* device = at::cuda::getDeviceProperties(pass.x.device().index());
  const std::int64_t most = kBlocksAProcessor * device->multiProcessorCount;
  const std::int64_t a_block = kBatchNormThreads * kPacksAThread * kBatchNormPack;
  CudaBatchNorm n{};
  n.num_blocks = static_cast<int>(std::clamp<std::int64_t>(pass.x.numel() / a_block, 1, most));
  partial = room(pass.x, 2 * n.num_blocks * pass.x.size(1));
  n.type = type_of(pass.x);
  n.then = pass.then;
  n.num_rows = pass.x.numel() / pass.x.size(1);
  n.C = static_cast<int>(pass.x.size(1));
  n.x = in(pass.x);
  n.residual = in(pass.residual);
  n.weight = pass.weight.const_data_ptr<float>();
  n.bias = pass.bias.const_data_ptr<float>();
  n.out = out(pass.out);
  n.mean = floats(pass.mean);
  n.inverse_deviation = floats(pass.inverse_deviation);
  n.partial = floats(partial);
  n.stream = stream_of(pass.x);
  return n;
}

void batch_norm_forward(const BatchNormPass& pass, const BatchNorm& norm) {
  const c10::cuda::CUDAGuard guard(pass.x.device());
  at::Tensor partial;
  auto n = batch_norm_of(pass, partial);
  n.epsilon = static_cast<float>(norm.epsilon);
  n.momentum = static_cast<float>(norm.momentum);
  n.running_mean = floats(norm.running_mean);
  n.running_var = floats(norm.running_var);
  batch_norm_forward_cuda(n);
  check_launch();
}

void batch_norm_backward(const at::Tensor& grad, const BatchNormPass& pass, const BatchNormGradients& results) {
  const c10::cuda::CUDAGuard guard(pass.x.device());
  at::Tensor partial;
  auto n = batch_norm_of(pass, partial);
  n.grad = in(grad);
  n.grad_x = out(results.x);
  n.grad_residual = out(results.residual);
  n.grad_weight = floats(results.weight);
  n.grad_bias = floats(results.bias);
  batch_norm_backward_cuda(n);
  check_launch();
}

CudaMaxPool max_pool_of(const at::Tensor& images, const at::Tensor& places) {
  CudaMaxPool p{};
  p.type = type_of(images);
  p.num_images = images.size(0);
  p.C = static_cast<int>(images.size(1));
  p.pooled_H = static_cast<int>(places.size(2));
  p.pooled_W = static_cast<int>(places.size(3));
  p.H = static_cast<int>(images.size(2));
  p.W = static_cast<int>(images.size(3));
  p.places = places.mutable_data_ptr<std::uint8_t>();
  p.stream = stream_of(images);
  return p;
}

void max_pool_forward(const at::Tensor& x, const at::Tensor& result, const at::Tensor& places) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto p = max_pool_of(x, places);
  p.x = in(x);
  p.out = out(result);
  max_pool_forward_cuda(p);
  check_launch();
}

void max_pool_backward(const at::Tensor& grad, const at::Tensor& places, const at::Tensor& grad_x) {
  const c10::cuda::CUDAGuard guard(grad_x.device());
  auto p = max_pool_of(grad_x, places);
  p.grad = in(grad);
  p.grad_x = out(grad_x);
  max_pool_backward_cuda(p);
  check_launch();
}

void column_sums(const at::Tensor& x, const at::Tensor& sums) {
  const c10::cuda::CUDAGuard guard(x.device());
  const auto rows = rows_of(x, {&x});
  const auto partial = room_for_sums(x, rows, 1);
  column_sums_cuda(rows, in(x), out(sums), floats(partial));
  check_launch();
}

void cross_entropy(const at::Tensor& logits, const at::Tensor& targets, float on_target, float on_every,
                   float gradient_scale, bool to_gradient, const at::Tensor& sum) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const auto rows = rows_of(logits, {&logits});
  const auto losses = room(logits, rows.num_rows);
  cross_entropy_cuda(rows, out(logits), targets.const_data_ptr<std::int64_t>(), on_target, on_every, gradient_scale,
                     to_gradient, floats(sum), floats(losses));
  check_launch();
}

void add_rows(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& order, const at::Tensor& values) {
  const c10::cuda::CUDAGuard guard(table.device());
  add_rows_cuda(rows_of(values, {&values}), ids.const_data_ptr<std::int64_t>(), order.const_data_ptr<std::int64_t>(),
                in(values), out(table));
  check_launch();
}

// cp.async, mma.sync on bf16 and FlashAttention came with compute capability 8.0. TESSERA_PRETEND_OLD_GPU lets tests
// take the way of older GPUs on a new one.
bool is_ampere(at::Device device) {
  static const bool pretends = std::getenv("TESSERA_PRETEND_OLD_GPU") != nullptr;
  return !pretends && at::cuda::getDeviceProperties(device.index())->major >= 8;
}

void attention_forward(const std::array<at::Tensor, 3>& qkv, const PackedAttention& how, const at::Tensor& result,
                       const at::Tensor& logsumexp) {
  const c10::cuda::CUDAGuard guard(result.device());
  attention_forward_cuda(attention_of(qkv, how, result, logsumexp));
  check_launch();
}

void attention_backward(const at::Tensor& grad, const std::array<at::Tensor, 3>& qkv, const PackedAttention& how,
                        const at::Tensor& result, const at::Tensor& logsumexp,
                        const std::array<at::Tensor, 3>& grad_qkv) {
  const c10::cuda::CUDAGuard guard(grad.device());
  const auto delta = at::empty_like(logsumexp);
  auto attention = attention_of(qkv, how, result, logsumexp);
  attention.grad = in(grad);
  attention.delta = floats(delta);
  for (std::size_t i = 0; i < 3; ++i) attention.grad_parts[i] = out(grad_qkv[i]);
  attention_backward_cuda(attention);
  check_launch();
}

std::array<at::Tensor, 3> widen_heads(const std::array<at::Tensor, 3>& qkv, std::int64_t wide,
                                      const at::Tensor& cu_seqlens, const at::Tensor& slopes, float in_q,
                                      float factor) {
  const c10::cuda::CUDAGuard guard(qkv[0].device());
  const std::int64_t T = qkv[0].size(0), H = qkv[0].size(1);
  std::array<at::Tensor, 3> result;
  WidenHeads heads{};
  for (std::size_t i = 0; i < 3; ++i) {
    result[i] = at::empty({T, H, wide}, qkv[i].options());
    heads.from[i] = in(qkv[i]);
    heads.token_stride[i] = qkv[i].stride(0);
    heads.head_stride[i] = qkv[i].stride(1);
    heads.to[i] = out(result[i]);
  }
  heads.num_heads = static_cast<int>(H);
  heads.D = static_cast<int>(qkv[0].size(2));
  heads.wide = static_cast<int>(wide);
  heads.cu_seqlens = cu_seqlens.const_data_ptr<std::int32_t>();
  heads.num_sequences = static_cast<int>(cu_seqlens.numel()) - 1;
  heads.slopes = slopes.defined() ? slopes.const_data_ptr<float>() : nullptr;
  heads.in_q = in_q;
  heads.factor = factor;
  widen_heads_cuda(type_of(qkv[0]), heads, T, stream_of(qkv[0]));
  check_launch();
  return result;
}

void flat_update(const at::Tensor& params, FlatUpdate flat, FlatUpdateFunction update, const void* constants) {
  const c10::cuda::CUDAGuard guard(params.device());
  flat.stream = stream_of(params);
  update(flat, constants);
  check_launch();
}

void square_sums(const at::Tensor& values, const at::Tensor& sums) {
  const c10::cuda::CUDAGuard guard(values.device());
  block_square_sums_cuda(type_of(values), in(values), values.numel(), kNormBlock, sums.mutable_data_ptr<double>(),
                         stream_of(values));
  check_launch();
}

at::Tensor add_units(const at::Tensor& sums, const at::Tensor& begins) {
  const c10::cuda::CUDAGuard guard(sums.device());
  const std::int64_t num_units = begins.numel() - 1;
  const auto of_units = at::empty({num_units}, sums.options());
  auto total = at::empty({1 + sums.size(0)}, sums.options());
  add_units_cuda(sums.const_data_ptr<double>(), sums.size(0), sums.size(1), begins.const_data_ptr<std::int64_t>(),
                 num_units, of_units.mutable_data_ptr<double>(), total.mutable_data_ptr<double>(), stream_of(sums));
  check_launch();
  return total;
}

void put_parts(const at::Tensor& flat, const std::vector<FlatPart>& parts) {
  const c10::cuda::CUDAGuard guard(flat.device());
  for (std::size_t begin = 0; begin < parts.size(); begin += kMostParts) {
    const std::size_t num_parts = std::min<std::size_t>(kMostParts, parts.size() - begin);
    CudaParts table{};
    for (std::size_t i = 0; i < num_parts; ++i) {
      const FlatPart& part = parts[begin + i];
      table.from[i] = in(part.values);
      table.offset[i] = part.offset;
      table.numel[i] = part.values.numel();
      table.adds[i] = part.adds;
    }
    put_parts_cuda(type_of(parts.front().values), type_of(flat), table, static_cast<int>(num_parts), out(flat),
                   stream_of(flat));
    check_launch();
  }
}

// Runs when the library is loaded.
const bool registered = [] {
  static const CudaKernels kernels = {
      .bias_gelu_forward = bias_gelu_forward,
      .bias_gelu_backward = bias_gelu_backward,
      .layer_norm_forward = layer_norm_forward,
      .layer_norm_backward = layer_norm_backward,
      .rms_norm_forward = rms_norm_forward,
      .rms_norm_backward = rms_norm_backward,
      .rotary = rotate_heads,
      .gated_forward = gated_forward,
      .gated_backward = gated_backward,
      .batch_norm_forward = batch_norm_forward,
      .batch_norm_backward = batch_norm_backward,
      .max_pool_forward = max_pool_forward,
      .max_pool_backward = max_pool_backward,
      .column_sums = column_sums,
      .cross_entropy_rows = cross_entropy,
      .add_rows = add_rows,
      .is_ampere = is_ampere,
      .attention_forward = attention_forward,
      .attention_backward = attention_backward,
      .block_forward = block_forward,
      .block_backward = block_backward,
      .widen_heads = widen_heads,
      .flat_update = flat_update,
      .put_parts = put_parts,
      .block_square_sums = square_sums,
      .add_units = add_units,
  };
  register_cuda_kernels(kernels);
  return true;
}();

}  // namespace
}  // namespace tessera::kernels
