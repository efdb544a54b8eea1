// Shape letters: T tokens, C hidden size, H heads, head size D.
#include "kernels/transformer_block.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "kernels/attention_paths.h"
#include "kernels/bias_gelu.h"
#include "kernels/column_sums.h"
#include "kernels/gradient_room.h"
#include "kernels/layer_norm.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kPartsDim = 2;

constexpr std::array kParameters = {&TransformerBlock::input_norm_weight,
                                    &TransformerBlock::input_norm_bias,
                                    &TransformerBlock::query_key_value_weight,
                                    &TransformerBlock::query_key_value_bias,
                                    &TransformerBlock::dense_weight,
                                    &TransformerBlock::dense_bias,
                                    &TransformerBlock::norm_weight,
                                    &TransformerBlock::norm_bias,
                                    &TransformerBlock::up_weight,
                                    &TransformerBlock::up_bias,
                                    &TransformerBlock::down_weight,
                                    &TransformerBlock::down_bias};

// What backward needs. Not autograd's saved variables: packing and unpacking two dozen of them takes as long as a
// launch or two, and what has been used can be given back at once.
struct Kept : torch::CustomClassHolder {
  TransformerBlock block;
  PackedAttention how;
  at::Tensor x, qkv, sum, inner;
  FusedAttention attended;
  at::Tensor input_mean, input_deviation, mean, deviation;
};

class Block : public torch::autograd::Function<Block> {
 public:
  // `edges`: the parameters, if their gradients go through autograd, else nothing.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, at::TensorList edges,
                            const TransformerBlock& block, const PackedAttention& how) {
    const at::AutoDispatchBelowADInplaceOrView below;  // the steps have no gradients of their own: less host time each
    const std::int64_t T = x.size(0), C = x.size(1), H = block.num_heads;
    auto kept = c10::make_intrusive<Kept>();
    Normed first = norm_forward(x, {}, block.input_norm_weight, block.input_norm_bias, block.epsilon);
    kept->qkv = at::linear(first.out, block.query_key_value_weight, block.query_key_value_bias).view({T, H, 3, C / H});
    first.out.reset();  // what is not kept is given back as soon as it has been read
    kept->attended = fused_attention(kept->qkv, kPartsDim, how);
    Normed second = norm_forward(at::linear(kept->attended.out.view({T, C}), block.dense_weight, block.dense_bias), x,
                                 block.norm_weight, block.norm_bias, block.epsilon);
    kept->inner = at::linear(second.out, block.up_weight);
    second.out.reset();
    at::Tensor result =
        at::linear(bias_gelu_forward(kept->inner, block.up_bias), block.down_weight, block.down_bias).add_(second.sum);
    kept->block = block;
    kept->how = how;
    kept->x = x;
    kept->sum = second.sum;
    kept->input_mean = first.mean;
    kept->input_deviation = first.inverse_deviation;
    kept->mean = second.mean;
    kept->deviation = second.inverse_deviation;
    context->saved_data["kept"] = c10::IValue::make_capsule(std::move(kept));
    context->saved_data["num_edges"] = static_cast<std::int64_t>(edges.size());
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (context->saved_data.count("kept") == 0) {
      throw Error("transformer_block keeps its values for one backward: run forward again before a second");
    }
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto num_edges = static_cast<std::size_t>(context->saved_data["num_edges"].toInt());
    context->saved_data.clear();
    auto& kept = static_cast<Kept&>(*capsule);
    TransformerBlock gradients;
    variable_list result(1 + num_edges + 2);
    result[0] = backward(kept, grads[0].contiguous(), gradients);
    for (std::size_t i = 0; i < kParameters.size(); ++i) {
      const at::Tensor& parameter = kept.block.*kParameters[i];
      at::Tensor& gradient = gradients.*kParameters[i];
      if (!parameter.requires_grad()) continue;
      if (num_edges == 0) {
        give_gradient(parameter, std::move(gradient));
      } else {
        result[1 + i] = std::move(gradient);
      }
    }
    return result;
  }

 private:
  // The gradient of x; those of the parameters go to `gradients`.
  static at::Tensor backward(Kept& kept, const at::Tensor& grad, TransformerBlock& gradients) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const TransformerBlock& block = kept.block;
    // gradient[rows, outputs]^T input[rows, inputs]
    const auto set_product = [&](at::Tensor TransformerBlock::*weight, const at::Tensor& gradient,
                                 const at::Tensor& input) {
      if (!(block.*weight).requires_grad()) return;
      at::Tensor room = gradient_room(block.*weight);
      gradients.*weight = room.defined() ? at::mm_out(room, gradient.t(), input) : gradient.t().mm(input);
    };
    auto gelu = bias_gelu_backward(grad.mm(block.down_weight), kept.inner, block.up_bias, /*with_out=*/true);
    kept.inner.reset();
    gradients.up_bias = gelu.bias;
    set_product(&TransformerBlock::down_weight, grad, gelu.out);
    gelu.out.reset();

    // What the second norm's kernel reads, the gradient of the block and of the sum, has the sums of two biases.
    auto norm = norm_backward(
        {gelu.x.mm(block.up_weight), grad, kept.sum, block.norm_weight, block.norm_bias, kept.mean, kept.deviation},
        NormExtras::kOutAndSums);
    kept.sum.reset();
    gradients.norm_weight = norm.weight;
    gradients.norm_bias = norm.bias;
    gradients.down_bias = norm.grad_sums;
    gradients.dense_bias = norm.x_sums;
    set_product(&TransformerBlock::up_weight, gelu.x, norm.out);
    gelu.x.reset();
    norm.out.reset();

    set_product(&TransformerBlock::dense_weight, norm.x, kept.attended.out.view_as(norm.x));
    const at::Tensor grad_qkv = fused_attention_backward(norm.x.mm(block.dense_weight).view_as(kept.attended.out),
                                                         kept.qkv, kPartsDim, kept.how, kept.attended)
                                    .view({kept.qkv.size(0), -1});
    kept.qkv.reset();
    kept.attended = {};
    gradients.query_key_value_bias = column_sums(grad_qkv);

    const auto input_norm =
        norm_backward({grad_qkv.mm(block.query_key_value_weight), norm.x, kept.x, block.input_norm_weight,
                       block.input_norm_bias, kept.input_mean, kept.input_deviation},
                      NormExtras::kOut);
    kept.x.reset();
    set_product(&TransformerBlock::query_key_value_weight, grad_qkv, input_norm.out);
    gradients.input_norm_weight = input_norm.weight;
    gradients.input_norm_bias = input_norm.bias;
    return input_norm.x;
  }
};

}  // namespace

bool transformer_block_serves(const at::Tensor& x, std::int64_t num_heads, const PackedAttention& how) {
  return x.dim() == 2 && fused_serves(x, x.size(1) / num_heads, how);
}

at::Tensor transformer_block(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how) {
  std::array<at::Tensor, kParameters.size()> parameters;
  bool takes_all = x.requires_grad();  // without an edge of x's own the node would not be part of the graph
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = block.*kParameters[i];
    takes_all = takes_all && (!parameters[i].requires_grad() || is_gradient_taken(parameters[i]));
  }
  return Block::apply(x.contiguous(), takes_all ? at::TensorList() : at::TensorList(parameters), block, how);
}

}  // namespace tessera::kernels
