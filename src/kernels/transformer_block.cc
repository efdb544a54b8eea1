#include "kernels/transformer_block.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "kernels/attention_paths.h"
#include "kernels/cuda_kernels.h"
#include "kernels/gradient_room.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The matrices first: with them whoever collects gradients makes room for all.
constexpr std::size_t kNumMatrices = 4;
constexpr std::array kParameters = {&TransformerBlock::query_key_value_weight,
                                    &TransformerBlock::dense_weight,
                                    &TransformerBlock::up_weight,
                                    &TransformerBlock::down_weight,
                                    &TransformerBlock::input_norm_weight,
                                    &TransformerBlock::input_norm_bias,
                                    &TransformerBlock::query_key_value_bias,
                                    &TransformerBlock::dense_bias,
                                    &TransformerBlock::norm_weight,
                                    &TransformerBlock::norm_bias,
                                    &TransformerBlock::up_bias,
                                    &TransformerBlock::down_bias};

// What backward needs. Not autograd's saved variables: packing and unpacking them takes as long as a launch or two.
struct Kept : torch::CustomClassHolder {
  TransformerBlock block;
  PackedAttention how;
  at::Tensor x, bytes;
};

// Where the parameters' gradients go. A vector has a place even if it is frozen: the kernels compute them all.
TransformerBlock places_of_gradients(const TransformerBlock& block) {
  TransformerBlock gradients;
  for (std::size_t i = 0; i < kParameters.size(); ++i) {
    const at::Tensor& parameter = block.*kParameters[i];
    at::Tensor& gradient = gradients.*kParameters[i];
    if (parameter.requires_grad()) gradient = gradient_room(parameter);
    const bool is_needed = parameter.requires_grad() || i >= kNumMatrices;
    if (is_needed && !gradient.defined()) gradient = at::empty_like(parameter);
  }
  return gradients;
}

class Block : public torch::autograd::Function<Block> {
 public:
  // `edges`: the parameters, if their gradients go through autograd, else nothing.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, at::TensorList edges,
                            const TransformerBlock& block, const PackedAttention& how) {
    auto kept = c10::make_intrusive<Kept>();
    kept->block = block;
    kept->how = how;
    kept->x = x;
    at::Tensor result = cuda_kernels().block_forward(x, block, how, kept->bytes);
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
    TransformerBlock gradients = places_of_gradients(kept.block);
    variable_list result(1 + num_edges + 2);
    result[0] =
        cuda_kernels().block_backward(grads[0].contiguous(), kept.x, kept.bytes, kept.block, kept.how, gradients);
    kept.bytes.reset();
    kept.x.reset();
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
