// A block of a transformer on a GPU, launch after launch: one allocation for what is kept, one for what is not, and
// between the launches nothing but arithmetic on addresses. A GPU that has little to do waits for the host, and
// tensors, their views and their dispatch took the host longer than all launches together. Only in libtessera_cuda.so.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "kernels/cuda_tensors.h"

// Shape letters: T tokens, C hidden size, H heads, head size D.
namespace tessera::kernels {
namespace {

// Hands out parts of one allocation; from address 0 it measures how much they need.
class Carver {
 public:
  explicit Carver(void* begin) : begin_(reinterpret_cast<std::uintptr_t>(begin)), at_(begin_) {}
  void* bytes(std::int64_t count) {
    constexpr std::uintptr_t kAlignment = 256;
    const std::uintptr_t part = at_;
    at_ += (static_cast<std::uintptr_t>(count) + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<void*>(part);
  }
  float* floats(std::int64_t count) {
    return static_cast<float*>(bytes(count * static_cast<std::int64_t>(sizeof(float))));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(at_ - begin_); }

 private:
  std::uintptr_t begin_, at_;
};

struct Sizes {
  NumberType type;
  std::int64_t T, C, H, row_bytes;  // row_bytes: of [T, C]
  cudaStream_t stream;

  Sizes(const at::Tensor& x, const TransformerBlock& block)
      : type(type_of(x)),
        T(x.size(0)),
        C(x.size(1)),
        H(block.num_heads),
        row_bytes(static_cast<std::int64_t>(x.nbytes())),
        stream(stream_of(x)) {}
};

struct KeptParts {
  void *qkv, *context, *sum, *inner;  // [T, H, 3, D], [T, C], [T, C], [T, 4 C]
  float *logsumexp, *input_mean, *input_deviation, *mean, *deviation;

  KeptParts(Carver& room, const Sizes& s)
      : qkv(room.bytes(3 * s.row_bytes)),
        context(room.bytes(s.row_bytes)),
        sum(room.bytes(s.row_bytes)),
        inner(room.bytes(4 * s.row_bytes)),
        logsumexp(room.floats(s.T * s.H)),
        input_mean(room.floats(s.T)),
        input_deviation(room.floats(s.T)),
        mean(room.floats(s.T)),
        deviation(room.floats(s.T)) {}
};

void* row_of(void* rows, const Sizes& s, std::int64_t number) {
  return static_cast<std::byte*>(rows) + number * s.row_bytes;
}

// What is needed at one time lies in one place: the GELU comes when both others have been read.
struct ForwardRoom {
  void *attended, *normed, *gelu;

  ForwardRoom(Carver& room, const Sizes& s) {
    gelu = room.bytes(4 * s.row_bytes);
    attended = gelu;
    normed = row_of(gelu, s, 1);
  }
};

struct BackwardRoom {
  void *grad_inner, *gelu;                               // [T, 4 C]
  void *grad_qkv, *grad_input_normed;                    // where grad_inner was
  void *grad_normed, *grad_context, *grad_sum, *normed;  // where gelu was; the first two one after the other
  float *partial, *delta;

  BackwardRoom(Carver& room, const Sizes& s) {
    grad_inner = grad_qkv = room.bytes(4 * s.row_bytes);
    grad_input_normed = row_of(grad_inner, s, 3);
    gelu = grad_normed = grad_context = room.bytes(4 * s.row_bytes);
    grad_sum = row_of(gelu, s, 1);
    normed = row_of(gelu, s, 2);
    partial = room.floats(kMostColumnSums * num_row_blocks(s.T) * s.C);
    delta = room.floats(s.T * s.H);
  }
};

template <typename Parts>
std::pair<at::Tensor, Parts> allocate(const at::Tensor& like, const Sizes& s) {
  Carver measure(nullptr);
  Parts{measure, s};
  at::Tensor bytes = at::empty({measure.size()}, like.options().dtype(at::kByte));
  Carver room(bytes.mutable_data_ptr());
  return {std::move(bytes), Parts(room, s)};
}

// [T, C] numbers; `parameters` may lie anywhere, all else is aligned.
CudaRows rows_of(const Sizes& s, std::int64_t C, std::initializer_list<const void*> parameters) {
  return {s.type, s.T, C, std::all_of(parameters.begin(), parameters.end(), is_aligned), s.stream};
}

// Each head's q, k and v are adjacent: `part` is one of the three, of the projection or of its gradient.
void* part_of(void* qkv, const Sizes& s, int part) {
  return static_cast<std::byte*>(qkv) + part * (s.row_bytes / s.T / s.H);
}

CudaAttention attention_of(const Sizes& s, const at::Tensor& x, const PackedAttention& how, const KeptParts& kept) {
  const std::int64_t D = s.C / s.H;
  CudaAttention a = attention_of(how, x, s.T, s.H, D);
  a.out = kept.context;
  a.logsumexp = kept.logsumexp;
  for (int part = 0; part < 3; ++part) {
    a.parts[part] = part_of(kept.qkv, s, part);
    a.token_stride[part] = 3 * s.C;
    a.head_stride[part] = 3 * D;
  }
  return a;
}

// out[T, N] = x[T, K] weight[N, K]^T
CudaProduct linear(const Sizes& s, const void* x, const at::Tensor& weight, void* out) {
  return {s.type, s.T, weight.size(0), weight.size(1), x, false, in(weight), true, out};
}
// out[T, K] = grad[T, N] weight[N, K]
CudaProduct of_input(const Sizes& s, const void* grad, const at::Tensor& weight, void* out) {
  return {s.type, s.T, weight.size(1), weight.size(0), grad, false, in(weight), false, out};
}

}  // namespace

at::Tensor block_forward(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how,
                         at::Tensor& kept_bytes) {
  const c10::cuda::CUDAGuard guard(x.device());
  const Sizes s(x, block);
  auto [bytes, kept] = allocate<KeptParts>(x, s);
  const auto [scratch, room] = allocate<ForwardRoom>(x, s);
  at::Tensor result = at::empty_like(x);
  const auto with_bias = [](CudaProduct product, const at::Tensor& bias) {
    product.bias = in(bias);
    return product;
  };
  const auto epsilon = static_cast<float>(block.epsilon);

  layer_norm_forward_cuda(rows_of(s, s.C, {in(x), in(block.input_norm_weight), in(block.input_norm_bias)}), in(x),
                          nullptr, in(block.input_norm_weight), in(block.input_norm_bias), epsilon, nullptr,
                          room.normed, kept.input_mean, kept.input_deviation);
  multiply(with_bias(linear(s, room.normed, block.query_key_value_weight, kept.qkv), block.query_key_value_bias));
  attention_forward_cuda(attention_of(s, x, how, kept));
  multiply(with_bias(linear(s, kept.context, block.dense_weight, room.attended), block.dense_bias));
  layer_norm_forward_cuda(rows_of(s, s.C, {in(x), in(block.norm_weight), in(block.norm_bias)}), room.attended, in(x),
                          in(block.norm_weight), in(block.norm_bias), epsilon, kept.sum, room.normed, kept.mean,
                          kept.deviation);
  multiply(linear(s, room.normed, block.up_weight, kept.inner));
  bias_gelu_forward_cuda(rows_of(s, 4 * s.C, {in(block.up_bias)}), kept.inner, in(block.up_bias), room.gelu);
  CudaProduct down = with_bias(linear(s, room.gelu, block.down_weight, out(result)), block.down_bias);
  down.plus = kept.sum;
  multiply(down);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  kept_bytes = std::move(bytes);
  return result;
}

at::Tensor block_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& kept_bytes,
                          const TransformerBlock& block, const PackedAttention& how,
                          const TransformerBlock& gradients) {
  const c10::cuda::CUDAGuard guard(x.device());
  const Sizes s(x, block);
  Carver kept_room(kept_bytes.mutable_data_ptr());
  const KeptParts kept(kept_room, s);
  const auto [scratch, room] = allocate<BackwardRoom>(x, s);
  at::Tensor grad_x = at::empty_like(x);
  // weight[N, K] = grad[T, N]^T input[T, K]
  const auto set_weight = [&](const at::Tensor& weight, const void* of_output, const void* input) {
    if (!weight.defined()) return;
    multiply({s.type, weight.size(0), weight.size(1), s.T, of_output, true, input, false, out(weight)});
  };

  multiply(of_input(s, in(grad), block.down_weight, room.grad_inner));
  bias_gelu_backward_cuda(rows_of(s, 4 * s.C, {in(block.up_bias)}), room.grad_inner, kept.inner, in(block.up_bias),
                          room.grad_inner, room.gelu, out(gradients.up_bias), room.partial);
  set_weight(gradients.down_weight, in(grad), room.gelu);

  // What the second norm's kernel reads, the gradient of the block and of the sum, has the sums of two biases.
  multiply(of_input(s, room.grad_inner, block.up_weight, room.grad_normed));
  layer_norm_backward_cuda(rows_of(s, s.C, {in(grad), in(block.norm_weight), in(block.norm_bias)}),
                           {room.grad_normed, in(grad), kept.sum, in(block.norm_weight), in(block.norm_bias), kept.mean,
                            kept.deviation, room.grad_sum, out(gradients.norm_weight), out(gradients.norm_bias),
                            room.normed, out(gradients.down_bias), out(gradients.dense_bias), room.partial});
  set_weight(gradients.up_weight, room.grad_inner, room.normed);

  set_weight(gradients.dense_weight, room.grad_sum, kept.context);
  multiply(of_input(s, room.grad_sum, block.dense_weight, room.grad_context));
  CudaAttention attention = attention_of(s, x, how, kept);
  attention.grad = room.grad_context;
  attention.delta = room.delta;
  for (int part = 0; part < 3; ++part) attention.grad_parts[part] = part_of(room.grad_qkv, s, part);
  attention_backward_cuda(attention);
  column_sums_cuda(rows_of(s, 3 * s.C, {}), room.grad_qkv, out(gradients.query_key_value_bias), room.partial);

  multiply(of_input(s, room.grad_qkv, block.query_key_value_weight, room.grad_input_normed));
  layer_norm_backward_cuda(
      rows_of(s, s.C, {in(x), in(block.input_norm_weight), in(block.input_norm_bias)}),
      {room.grad_input_normed, room.grad_sum, in(x), in(block.input_norm_weight), in(block.input_norm_bias),
       kept.input_mean, kept.input_deviation, out(grad_x), out(gradients.input_norm_weight),
       out(gradients.input_norm_bias), room.normed, nullptr, nullptr, room.partial});
  set_weight(gradients.query_key_value_weight, room.grad_qkv, room.normed);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return grad_x;
}

}  // namespace tessera::kernels
