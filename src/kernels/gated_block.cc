#include "kernels/gated_block.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/check.h"
#include "kernels/gated_block_passes.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::array kProjections = {
    &GatedBlock::query_key_value, &GatedBlock::query, &GatedBlock::key, &GatedBlock::value, &GatedBlock::output,
    &GatedBlock::gate_up,         &GatedBlock::gate,  &GatedBlock::up,  &GatedBlock::down};
constexpr std::array kNorms = {
    &GatedBlock::norm_before_attention, &GatedBlock::norm_after_attention, &GatedBlock::norm_before_mlp,
    &GatedBlock::norm_after_mlp,        &GatedBlock::query_norm,           &GatedBlock::key_norm};

// Those that exist.
std::vector<at::Tensor> parameters_of(const GatedBlock& block) {
  std::vector<at::Tensor> parameters;
  parameters.reserve(2 * kProjections.size() + kNorms.size());
  const auto add = [&](const at::Tensor& parameter) {
    if (parameter.defined()) parameters.push_back(parameter);
  };
  for (const auto projection : kProjections) add((block.*projection).weight), add((block.*projection).bias);
  for (const auto norm : kNorms) add(block.*norm);
  return parameters;
}

// Messages are made only for what is wrong: this runs before every launch of a block.
class Checks {
 public:
  explicit Checks(const at::Tensor& x) : x_(x) {}
  void projection(const GatedBlock::Projection& projection, std::int64_t out, std::int64_t in, const char* name) const {
    parameter(projection.weight, {out, in}, name);
    if (projection.bias.defined()) parameter(projection.bias, {out}, name);
  }
  void parameter(const at::Tensor& parameter, at::IntArrayRef sizes, const char* name) const {
    if (parameter.defined() && parameter.sizes() == sizes && parameter.scalar_type() == x_.scalar_type() &&
        parameter.device() == x_.device() && parameter.is_contiguous()) {
      return;
    }
    check(false, "gated_block",
          fmt::format("{} contiguous, [{}] in the type of x, {}, but got {}", name, fmt::join(sizes, ", "),
                      shape_text(x_), parameter.defined() ? shape_text(parameter) : "none"));
  }

 private:
  const at::Tensor& x_;
};

void check_block(const at::Tensor& x, const GatedBlock& b) {
  const Checks checks(x);
  const std::int64_t C = x.size(1), Q = b.num_heads * b.head_size, K = b.num_key_value_heads * b.head_size;
  if (b.query_key_value.weight.defined()) {
    checks.projection(b.query_key_value, Q + 2 * K, C, "the projection to q, k and v");
  } else {
    checks.projection(b.query, Q, C, "the projection to q");
    checks.projection(b.key, K, C, "the projection to k");
    checks.projection(b.value, K, C, "the projection to v");
  }
  checks.projection(b.output, C, Q, "attention's output projection");
  if (!b.down.weight.defined() || b.down.weight.dim() != 2) check(false, "gated_block", "a projection down, [C, F]");
  const std::int64_t F = b.down.weight.size(1);
  if (b.gate_up.weight.defined()) {
    checks.projection(b.gate_up, 2 * F, C, "the projection to gate and up");
  } else {
    checks.projection(b.gate, F, C, "the projection to the gate");
    checks.projection(b.up, F, C, "the projection to up");
  }
  checks.projection(b.down, C, F, "the projection down");
  for (std::size_t i = 0; i < 4; ++i) {
    if ((b.*kNorms[i]).defined()) checks.parameter(b.*kNorms[i], {C}, "the weight of a norm");
  }
  if (b.query_norm.defined() != b.key_norm.defined()) check(false, "gated_block", "norms of both q and k, or of none");
  if (!b.query_norm.defined()) return;
  const bool is_whole = b.query_norm.numel() != b.head_size;
  checks.parameter(b.query_norm, {is_whole ? Q : b.head_size}, "the weight of the norm of q");
  checks.parameter(b.key_norm, {is_whole ? K : b.head_size}, "the weight of the norm of k");
}

class GatedBlockNode : public torch::autograd::Function<GatedBlockNode> {
 public:
  // `edges`: the parameters, if their gradients go through autograd, else nothing. Not autograd's saved variables:
  // packing and unpacking them takes as long as a launch or two.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*x*/, at::TensorList edges,
                            const c10::intrusive_ptr<KeptGatedBlock>& kept) {
    at::Tensor result = gated_block_forward(*kept, /*keeps=*/true);
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    context->saved_data["num_edges"] = static_cast<std::int64_t>(edges.size());
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (context->saved_data.count("kept") == 0) {
      throw Error("gated_block keeps its values for one backward: run forward again before a second");
    }
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto num_edges = static_cast<std::size_t>(context->saved_data["num_edges"].toInt());
    context->saved_data.clear();
    auto& kept = static_cast<KeptGatedBlock&>(*capsule);
    ParameterGradients gradients(/*gives=*/num_edges == 0);
    variable_list result(1 + num_edges + 1);
    result[0] = gated_block_backward(grads[0].contiguous(), kept, context->needs_input_grad(0), gradients);
    if (num_edges == 0) {
      gradients.give();
    } else {
      const std::vector<at::Tensor> parameters = parameters_of(kept.block);
      for (std::size_t i = 0; i < num_edges; ++i) result[1 + i] = gradients.take(parameters[i]);
    }
    return result;
  }
};

}  // namespace

bool gated_block_serves(const at::Tensor& x, std::int64_t head_size, const PackedAttention& how) {
  return x.dim() == 2 && attention_has_passes(x, head_size, how);
}

at::Tensor gated_block(const at::Tensor& x, const GatedBlock& block, const std::optional<RotaryTable>& rotary,
                       const PackedAttention& how) {
  check_float_type(x, "gated_block", "x");
  if (!gated_block_serves(x, block.head_size, how)) {
    check(
        false, "gated_block",
        fmt::format("what gated_block_serves() takes, tokens [T, C] without dropout and ALiBi, but got {} and heads of "
                    "{}, dropout {}{}",
                    shape_text(x), block.head_size, drops(how) ? how.dropout : 0.0, how.alibi_slopes ? ", ALiBi" : ""));
  }
  check_block(x, block);
  auto kept = c10::make_intrusive<KeptGatedBlock>();
  kept->block = block;
  kept->rotary = rotary;
  kept->how = how;
  kept->x = x.contiguous();
  const std::vector<at::Tensor> parameters = parameters_of(block);
  const auto is_trained = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  if (!c10::GradMode::is_enabled() || !(is_trained(x) || std::ranges::any_of(parameters, is_trained))) {
    return gated_block_forward(*kept, /*keeps=*/false);
  }
  const bool gives_all = gives_gradients(x, parameters);
  return GatedBlockNode::apply(x, gives_all ? at::TensorList() : at::TensorList(parameters), kept);
}

}  // namespace tessera::kernels
