#include "kernels/transformer_block.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <c10/util/strides.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <utility>

#include "kernels/attention_paths.h"
#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/gradient_room.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The matrices first: with them whoever collects gradients makes room for all.
constexpr std::size_t kNumMatrices = 4, kDownWeight = 3;
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
struct KeptBlock : torch::CustomClassHolder {
  TransformerBlock block;
  PackedAttention how;
  at::Tensor x, bytes;
};

using Parameters = std::array<at::Tensor, kParameters.size()>;

Parameters parameters_of(const TransformerBlock& block) {
  Parameters parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = block.*kParameters[i];
  return parameters;
}

// Where the parameters' gradients go: where there is room for them, else into one buffer for all. A vector has a place
// even if it is frozen: the kernels compute them all.
Parameters places_of_gradients(const Parameters& parameters) {
  constexpr std::int64_t kAlignment = 32;  // in numbers: 64 bytes
  Parameters gradients;
  std::array<std::int64_t, kParameters.size()> offsets{};
  std::int64_t numel = 0;
  const auto needs_place = [&](std::size_t i) {
    return (parameters[i].requires_grad() || i >= kNumMatrices) && !gradients[i].defined();
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].requires_grad()) gradients[i] = gradient_room(parameters[i]);
    if (!needs_place(i)) continue;
    offsets[i] = numel;
    numel += (parameters[i].numel() + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (numel == 0) return gradients;
  const at::AutoDispatchBelowADInplaceOrView below;  // no gradient of a gradient: less host time
  const at::Tensor buffer = at::empty({numel}, parameters[0].options());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!needs_place(i)) continue;
    const at::IntArrayRef sizes = parameters[i].sizes();
    gradients[i] = buffer.as_strided(sizes, c10::contiguous_strides(sizes), offsets[i]);
  }
  return gradients;
}

// The kernels get addresses alone. Messages are made only for what is wrong: this runs before every launch of a block.
void check_inputs(const at::Tensor& x, const Parameters& parameters, const PackedAttention& how) {
  constexpr const char* kName = "transformer_block";
  const std::int64_t C = x.size(1);
  constexpr std::array<std::int64_t, kParameters.size()> kRows = {3, 1, 4, 1, 1, 1, 3, 1, 1, 1, 4, 1};  // times C
  const auto is_like_x = [&x](const at::Tensor& tensor, at::ScalarType type) {
    return tensor.scalar_type() == type && tensor.device() == x.device() && tensor.is_contiguous();
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    const std::array<std::int64_t, 2> sizes = {kRows[i] * C, i == kDownWeight ? 4 * C : C};
    const bool fits = parameter.sizes() == at::IntArrayRef(sizes.data(), i < kNumMatrices ? 2 : 1);
    if (fits && is_like_x(parameter, x.scalar_type())) continue;
    check(false, kName,
          fmt::format("parameter {} contiguous, for {} hidden numbers, in the type of x, but got {} for {}", i, C,
                      shape_text(parameter), shape_text(x)));
  }
  if (!is_like_x(how.cu_seqlens, at::kInt)) check(false, kName, "offsets as contiguous int32 on the device of x");
  if (how.alibi_slopes && !is_like_x(*how.alibi_slopes, at::kFloat)) {
    check(false, kName, "slopes as contiguous float32 on the device of x");
  }
}

class Block : public torch::autograd::Function<Block> {
 public:
  // `edges`: the parameters, if their gradients go through autograd, else nothing.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, at::TensorList edges,
                            const TransformerBlock& block, const PackedAttention& how) {
    auto kept = c10::make_intrusive<KeptBlock>();
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
    auto& kept = static_cast<KeptBlock&>(*capsule);
    const Parameters parameters = parameters_of(kept.block);
    Parameters gradients = places_of_gradients(parameters);
    TransformerBlock places;
    for (std::size_t i = 0; i < gradients.size(); ++i) places.*kParameters[i] = gradients[i];
    variable_list result(1 + num_edges + 2);
    result[0] = cuda_kernels().block_backward(grads[0].contiguous(), kept.x, kept.bytes, kept.block, kept.how, places);
    kept.bytes.reset();
    kept.x.reset();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!parameters[i].requires_grad()) gradients[i].reset();
    }
    if (num_edges == 0) {
      give_gradients(parameters, gradients);
    } else {
      std::move(gradients.begin(), gradients.end(), result.begin() + 1);
    }
    return result;
  }
};

}  // namespace

bool transformer_block_serves(const at::Tensor& x, std::int64_t num_heads, const PackedAttention& how) {
  return x.dim() == 2 && fused_serves(x, x.size(1) / num_heads, how);
}

at::Tensor transformer_block(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how) {
  const Parameters parameters = parameters_of(block);
  check_inputs(x, parameters, how);
  const bool gives_all = gives_gradients(x, parameters);
  return Block::apply(x.contiguous(), gives_all ? at::TensorList() : at::TensorList(parameters), block, how);
}

}  // namespace tessera::kernels
