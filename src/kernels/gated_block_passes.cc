// A projection of several things (q, k and v; gate and up) is used as a whole in forward. In backward its rows are used
// as if they were projections of their own: their gradients need not be joined first.
#include "kernels/gated_block_passes.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>

#include <array>
#include <utility>

#include "kernels/decoder_passes.h"
#include "kernels/row_sums.h"

namespace tessera::kernels {
namespace {

using Projection = GatedBlock::Projection;

at::Tensor project(const at::Tensor& x, const Projection& to) {
  return at::linear(x, to.weight, to.bias.defined() ? std::optional(to.bias) : std::nullopt);
}

Projection rows_of(const Projection& whole, std::int64_t begin, std::int64_t count) {
  const auto rows = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, begin, count) : x; };
  return {rows(whole.weight), rows(whole.bias)};
}

std::array<Projection, 3> query_key_value_of(const GatedBlock& block, const Projection& whole) {
  const std::int64_t Q = block.num_heads * block.head_size, K = block.num_key_value_heads * block.head_size;
  return {rows_of(whole, 0, Q), rows_of(whole, Q, K), rows_of(whole, Q + K, K)};
}

std::array<Projection, 2> gate_up_of(const Projection& whole, std::int64_t F) {
  return {rows_of(whole, 0, F), rows_of(whole, F, F)};
}

Projection places_of(const Projection& projection, ParameterGradients& gradients) {
  const at::Tensor weight = gradients.place(projection.weight);
  return {weight, gradients.place(projection.bias)};
}

// Gradients of a projection's parameters, from that of its result and from what it read.
void set_gradients(const Projection& places, const at::Tensor& grad, const at::Tensor& input) {
  if (places.bias.defined()) column_sums(grad, places.bias);
  at::Tensor weight = places.weight;
  if (weight.defined()) at::mm_out(weight, grad.t(), input);
}

// The gradient of what several projections read: rounded after each, as autograd's sums are; on a GPU once less, and
// with no launch of its own.
void add_product(at::Tensor& sum, const at::Tensor& grad, const at::Tensor& weight) {
  sum.is_cuda() ? sum.addmm_(grad, weight) : sum.add_(grad.mm(weight));
}

RmsNormed norm_of(const GatedBlock& block, const at::Tensor& x, const at::Tensor& weight) {
  return rms_forward(x, {}, weight, block.epsilon, block.norm_weight);
}

// What a projection reads: x or, if there is one, its norm.
struct Input {
  at::Tensor rows, inverse_rms;
};
Input input_of(const GatedBlock& block, const at::Tensor& x, const at::Tensor& norm) {
  if (!norm.defined()) return {x, {}};
  RmsNormed normed = norm_of(block, x, norm);
  return {std::move(normed.out), std::move(normed.inverse_rms)};
}

// Queries or keys as rows of their norm: of one head, or of all.
at::Tensor rows_of_heads(const at::Tensor& heads, const at::Tensor& norm) {
  return norm.size(0) == heads.size(2) ? heads : heads.flatten(1);
}

struct Heads {
  at::Tensor x, inverse_rms;  // as attention reads them; of their norm
};
Heads as_attention_reads(const KeptGatedBlock& kept, const at::Tensor& heads, const at::Tensor& norm) {
  Heads result{heads, {}};
  if (norm.defined()) {
    RmsNormed normed = norm_of(kept.block, rows_of_heads(heads, norm), norm);
    result = {normed.out.view(heads.sizes()), std::move(normed.inverse_rms)};
  }
  if (kept.rotary) result.x = rotated(result.x, *kept.rotary, /*back=*/false);
  return result;
}

// The same in backward: without a norm, they were kept.
Heads as_attention_read(const KeptGatedBlock& kept, const at::Tensor& heads, const at::Tensor& norm) {
  return norm.defined() ? as_attention_reads(kept, heads, norm) : Heads{heads, {}};
}

// From the gradient of what attention read to that of the projection: [T, H D].
at::Tensor before_attention(const KeptGatedBlock& kept, at::Tensor grad, const at::Tensor& heads,
                            const at::Tensor& norm, const at::Tensor& inverse_rms, ParameterGradients& gradients) {
  if (kept.rotary) grad = rotated(grad, *kept.rotary, /*back=*/true);
  grad = grad.contiguous();
  const std::int64_t width = grad.size(1) * grad.size(2);
  if (norm.defined()) {
    const at::Tensor rows = rows_of_heads(heads, norm);
    grad = rms_backward(grad.view(rows.sizes()), {}, rows, norm, inverse_rms, kept.block.norm_weight,
                        gradients.place(norm));
  }
  return grad.view({-1, width});
}

void project_heads(KeptGatedBlock& kept, const at::Tensor& input) {
  const GatedBlock& b = kept.block;
  const std::int64_t H = b.num_heads, Hkv = b.num_key_value_heads, D = b.head_size;
  if (!b.query_key_value.weight.defined()) {
    kept.q = project(input, b.query).view({-1, H, D});
    kept.k = project(input, b.key).view({-1, Hkv, D});
    kept.v = project(input, b.value).view({-1, Hkv, D});
    return;
  }
  const at::Tensor all = project(input, b.query_key_value).view({-1, H + 2 * Hkv, D});
  kept.q = all.narrow(1, 0, H), kept.k = all.narrow(1, H, Hkv), kept.v = all.narrow(1, H + Hkv, Hkv);
  // The rotated ones replace q and k: a copy of v lets go of the whole.
  if (kept.rotary && !b.query_norm.defined()) kept.v = kept.v.contiguous();
}

// Attention with its projections: [T, C].
at::Tensor attend(KeptGatedBlock& kept, bool keeps) {
  const GatedBlock& b = kept.block;
  project_heads(kept, input_of(b, kept.x, b.norm_before_attention).rows);
  if (kept.rotary) check_rotary_table(*kept.rotary, kept.q);
  {
    const at::Tensor q = as_attention_reads(kept, kept.q, b.query_norm).x;
    if (!b.query_norm.defined() || !keeps) kept.q = q;
    const at::Tensor k = as_attention_reads(kept, kept.k, b.key_norm).x;
    if (!b.key_norm.defined() || !keeps) kept.k = k;
    check_attention_inputs(q, k, kept.v, kept.how);
    kept.attention = attention_forward(q, k, kept.v, kept.how);
  }
  if (!keeps) kept.q.reset(), kept.k.reset(), kept.v.reset();
  at::Tensor attended = project(kept.attention.out.view({kept.x.size(0), -1}), b.output);
  if (!keeps) kept.attention = {};
  if (!b.norm_after_attention.defined()) return attended;
  RmsNormed normed = norm_of(b, attended, b.norm_after_attention);
  if (keeps) kept.attended = std::move(attended), kept.attended_rms = std::move(normed.inverse_rms);
  return normed.out;
}

at::Tensor gated_mlp(KeptGatedBlock& kept, at::Tensor input, bool keeps) {
  const GatedBlock& b = kept.block;
  if (b.gate_up.weight.defined()) {
    const at::Tensor both = project(input, b.gate_up);
    const std::int64_t F = both.size(1) / 2;
    kept.gate = both.narrow(1, 0, F), kept.up = both.narrow(1, F, F);
  } else {
    kept.gate = project(input, b.gate), kept.up = project(input, b.up);
  }
  input.reset();
  at::Tensor product = gated_product(kept.gate, kept.up, b.activation);
  if (!keeps) kept.gate.reset(), kept.up.reset();
  at::Tensor mlp = project(product, b.down);
  product.reset();
  if (!b.norm_after_mlp.defined()) return mlp;
  RmsNormed normed = norm_of(b, mlp, b.norm_after_mlp);
  if (keeps) kept.mlp = std::move(mlp), kept.mlp_rms = std::move(normed.inverse_rms);
  return normed.out;
}

// To the gradient of the sum after attention.
at::Tensor mlp_backward(const at::Tensor& grad, KeptGatedBlock& kept, ParameterGradients& gradients) {
  const GatedBlock& b = kept.block;
  at::Tensor grad_mlp = grad;
  if (b.norm_after_mlp.defined()) {
    grad_mlp = rms_backward(grad, {}, kept.mlp, b.norm_after_mlp, kept.mlp_rms, b.norm_weight,
                            gradients.place(b.norm_after_mlp));
    kept.mlp.reset();
  }
  const Projection of_down = places_of(b.down, gradients);
  GatedGradients inner = gated_product_backward(grad_mlp.mm(b.down.weight), kept.gate, kept.up, b.activation,
                                                /*wants_product=*/of_down.weight.defined());
  kept.gate.reset();
  kept.up.reset();
  set_gradients(of_down, grad_mlp, inner.product);
  inner.product.reset();
  grad_mlp.reset();
  gradients.give_on_cpu();

  const bool is_whole = b.gate_up.weight.defined();
  const std::int64_t F = inner.gate.size(1);
  const auto parts = is_whole ? gate_up_of(b.gate_up, F) : std::array{b.gate, b.up};
  const Input input = input_of(b, kept.sum, b.norm_before_mlp);
  {
    const auto places = is_whole ? gate_up_of(places_of(b.gate_up, gradients), F)
                                 : std::array{places_of(b.gate, gradients), places_of(b.up, gradients)};
    set_gradients(places[0], inner.gate, input.rows);
    set_gradients(places[1], inner.up, input.rows);
  }
  at::Tensor grad_input = inner.gate.mm(parts[0].weight);
  inner.gate.reset();
  add_product(grad_input, inner.up, parts[1].weight);
  inner.up.reset();
  gradients.give_on_cpu();
  if (!b.norm_before_mlp.defined()) return grad_input.add_(grad);
  return rms_backward(grad_input, grad, kept.sum, b.norm_before_mlp, input.inverse_rms, b.norm_weight,
                      gradients.place(b.norm_before_mlp));
}

// From the gradient of the sum to those of q, k and v as projected: [T, H D], [T, Hkv D].
std::array<at::Tensor, 3> attention_gradients(const at::Tensor& grad_sum, KeptGatedBlock& kept,
                                              ParameterGradients& gradients) {
  const GatedBlock& b = kept.block;
  const std::int64_t T = grad_sum.size(0);
  at::Tensor grad_attended = grad_sum;
  if (b.norm_after_attention.defined()) {
    grad_attended = rms_backward(grad_sum, {}, kept.attended, b.norm_after_attention, kept.attended_rms, b.norm_weight,
                                 gradients.place(b.norm_after_attention));
    kept.attended.reset();
  }
  set_gradients(places_of(b.output, gradients), grad_attended, kept.attention.out.view({T, -1}));
  at::Tensor grad_context = grad_attended.mm(b.output.weight).view(kept.attention.out.sizes());
  grad_attended.reset();
  gradients.give_on_cpu();

  Heads q = as_attention_read(kept, kept.q, b.query_norm), k = as_attention_read(kept, kept.k, b.key_norm);
  AttentionGradients grads = attention_backward(grad_context, q.x, k.x, kept.v, kept.how, kept.attention);
  grad_context.reset();
  kept.attention = {};
  kept.v.reset(), q.x.reset(), k.x.reset();
  if (!b.query_norm.defined()) kept.q.reset(), kept.k.reset();
  const std::array<at::Tensor, 3> projected = {
      before_attention(kept, std::move(grads.q), kept.q, b.query_norm, q.inverse_rms, gradients),
      before_attention(kept, std::move(grads.k), kept.k, b.key_norm, k.inverse_rms, gradients),
      grads.v.contiguous().view({T, -1})};
  kept.q.reset(), kept.k.reset();
  return projected;
}

// To the gradient of the block's input, if it is wanted.
at::Tensor projections_backward(const std::array<at::Tensor, 3>& grads, const at::Tensor& grad_sum,
                                KeptGatedBlock& kept, bool wants_x, ParameterGradients& gradients) {
  const GatedBlock& b = kept.block;
  const at::Tensor& norm = b.norm_before_attention;
  const bool is_whole = b.query_key_value.weight.defined();
  const auto parts = is_whole ? query_key_value_of(b, b.query_key_value) : std::array{b.query, b.key, b.value};
  const Input input = input_of(b, kept.x, norm);
  {
    const auto places = is_whole ? query_key_value_of(b, places_of(b.query_key_value, gradients))
                                 : std::array{places_of(b.query, gradients), places_of(b.key, gradients),
                                              places_of(b.value, gradients)};
    for (std::size_t i = 0; i < 3; ++i) set_gradients(places[i], grads[i], input.rows);
  }
  if (!wants_x && !(norm.defined() && norm.requires_grad())) return {};
  at::Tensor grad_input = grads[2].mm(parts[2].weight);  // in autograd's order
  add_product(grad_input, grads[1], parts[1].weight);
  add_product(grad_input, grads[0], parts[0].weight);
  if (!norm.defined()) return grad_input.add_(grad_sum);
  return rms_backward(grad_input, grad_sum, kept.x, norm, input.inverse_rms, b.norm_weight, gradients.place(norm));
}

}  // namespace

at::Tensor gated_block_forward(KeptGatedBlock& kept, bool keeps) {
  const at::AutoDispatchBelowADInplaceOrView below;  // no gradient of a gradient: less host time
  const GatedBlock& b = kept.block;
  at::Tensor attended = attend(kept, keeps);
  if (!b.norm_before_mlp.defined()) {
    kept.sum = attended.add_(kept.x);
    return gated_mlp(kept, kept.sum, keeps).add_(kept.sum);
  }
  RmsNormed normed = rms_forward(attended, kept.x, b.norm_before_mlp, b.epsilon, b.norm_weight);
  attended.reset();
  kept.sum = std::move(normed.sum);
  return gated_mlp(kept, std::move(normed.out), keeps).add_(kept.sum);
}

at::Tensor gated_block_backward(const at::Tensor& grad, KeptGatedBlock& kept, bool wants_x,
                                ParameterGradients& gradients) {
  const at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor grad_sum = mlp_backward(grad, kept, gradients);
  kept.sum.reset();
  const auto grads = attention_gradients(grad_sum, kept, gradients);
  const at::Tensor grad_x = projections_backward(grads, grad_sum, kept, wants_x, gradients);
  kept.x.reset();
  return grad_x;
}

}  // namespace tessera::kernels
