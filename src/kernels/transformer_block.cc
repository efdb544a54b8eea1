// Shape letters: T tokens, C hidden size, H heads, head size D.
#include "kernels/transformer_block.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/attention_paths.h"
#include "kernels/bias_gelu.h"
#include "kernels/column_sums.h"
#include "kernels/gradient_room.h"
#include "kernels/layer_norm.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The inputs' places in apply(), and in what backward returns.
enum Input : std::size_t {
  kX,
  kInputNormWeight,
  kInputNormBias,
  kQkvWeight,
  kQkvBias,
  kDenseWeight,
  kDenseBias,
  kNormWeight,
  kNormBias,
  kUpWeight,
  kUpBias,
  kDownWeight,
  kDownBias,
  kNumInputs
};
// After the inputs, in what is saved. Biases that backward does not need are saved as well: they are parameters.
enum Kept : std::size_t {
  kInputMean = kNumInputs,
  kInputDeviation,
  kQkv,
  kContext,
  kLogsumexp,
  kSum,
  kMean,
  kDeviation,
  kInner,
  kOffsets,
  kSlopes,
  kNumKept
};

constexpr std::int64_t kPartsDim = 2;

class Block : public torch::autograd::Function<Block> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& input_norm_weight,
                            const at::Tensor& input_norm_bias, const at::Tensor& qkv_weight, const at::Tensor& qkv_bias,
                            const at::Tensor& dense_weight, const at::Tensor& dense_bias, const at::Tensor& norm_weight,
                            const at::Tensor& norm_bias, const at::Tensor& up_weight, const at::Tensor& up_bias,
                            const at::Tensor& down_weight, const at::Tensor& down_bias, std::int64_t num_heads,
                            double epsilon, const PackedAttention& how) {
    const std::int64_t T = x.size(0), C = x.size(1);
    Normed first = norm_forward(x, {}, input_norm_weight, input_norm_bias, epsilon);
    const at::Tensor qkv = at::linear(first.out, qkv_weight, qkv_bias).view({T, num_heads, 3, C / num_heads});
    first.out.reset();  // what is not kept is given back as soon as it has been read
    const FusedAttention attended = fused_attention(qkv, kPartsDim, how);
    Normed second = norm_forward(at::linear(attended.out.view({T, C}), dense_weight, dense_bias), x, norm_weight,
                                 norm_bias, epsilon);
    const at::Tensor inner = at::linear(second.out, up_weight);
    second.out.reset();
    context->save_for_backward({x,          input_norm_weight, input_norm_bias,
                                qkv_weight, qkv_bias,          dense_weight,
                                dense_bias, norm_weight,       norm_bias,
                                up_weight,  up_bias,           down_weight,
                                down_bias,  first.mean,        first.inverse_deviation,
                                qkv,        attended.out,      attended.logsumexp,
                                second.sum, second.mean,       second.inverse_deviation,
                                inner,      how.cu_seqlens,    how.alibi_slopes.value_or(at::Tensor())});
    context->saved_data["max_seqlen"] = how.max_seqlen;
    return at::linear(bias_gelu_forward(inner, up_bias), down_weight, down_bias).add_(second.sum);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    variable_list result(kNumInputs + 3);
    // gradient[rows, outputs]^T input[rows, inputs]
    const auto weight_gradient = [&](Input weight, const at::Tensor& gradient, const at::Tensor& input) {
      if (!context->needs_input_grad(weight)) return;
      at::Tensor room = gradient_room(saved[weight]);
      result[weight] = room.defined() ? at::mm_out(room, gradient.t(), input) : gradient.t().mm(input);
    };
    const at::Tensor grad = grads[0].contiguous();

    auto gelu = bias_gelu_backward(grad.mm(saved[kDownWeight]), saved[kInner], saved[kUpBias], /*with_out=*/true);
    result[kUpBias] = gelu.bias;
    weight_gradient(kDownWeight, grad, gelu.out);
    gelu.out.reset();

    // What the second norm's kernel reads, the gradient of the block and of the sum, has the sums of two biases.
    auto norm = norm_backward({gelu.x.mm(saved[kUpWeight]), grad, saved[kSum], saved[kNormWeight], saved[kNormBias],
                               saved[kMean], saved[kDeviation]},
                              NormExtras::kOutAndSums);
    result[kNormWeight] = norm.weight;
    result[kNormBias] = norm.bias;
    result[kDownBias] = norm.grad_sums;
    result[kDenseBias] = norm.x_sums;
    weight_gradient(kUpWeight, gelu.x, norm.out);
    gelu.x.reset();
    norm.out.reset();

    const at::Tensor &qkv = saved[kQkv], &attended = saved[kContext];
    weight_gradient(kDenseWeight, norm.x, attended.view_as(norm.x));
    PackedAttention how;
    how.cu_seqlens = saved[kOffsets];
    how.max_seqlen = context->saved_data["max_seqlen"].toInt();
    if (saved[kSlopes].defined()) how.alibi_slopes = saved[kSlopes];
    const at::Tensor grad_qkv = fused_attention_backward(norm.x.mm(saved[kDenseWeight]).view_as(attended), qkv,
                                                         kPartsDim, how, {attended, saved[kLogsumexp]})
                                    .view({qkv.size(0), -1});
    result[kQkvBias] = column_sums(grad_qkv);

    const auto input_norm = norm_backward({grad_qkv.mm(saved[kQkvWeight]), norm.x, saved[kX], saved[kInputNormWeight],
                                           saved[kInputNormBias], saved[kInputMean], saved[kInputDeviation]},
                                          NormExtras::kOut);
    weight_gradient(kQkvWeight, grad_qkv, input_norm.out);
    result[kInputNormWeight] = input_norm.weight;
    result[kInputNormBias] = input_norm.bias;
    result[kX] = input_norm.x;
    return result;
  }
};

}  // namespace

bool transformer_block_serves(const at::Tensor& x, std::int64_t num_heads, const PackedAttention& how) {
  return x.dim() == 2 && fused_serves(x, x.size(1) / num_heads, how);
}

at::Tensor transformer_block(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how) {
  return Block::apply(x.contiguous(), block.input_norm_weight, block.input_norm_bias, block.query_key_value_weight,
                      block.query_key_value_bias, block.dense_weight, block.dense_bias, block.norm_weight,
                      block.norm_bias, block.up_weight, block.up_bias, block.down_weight, block.down_bias,
                      block.num_heads, block.epsilon, how);
}

}  // namespace tessera::kernels
