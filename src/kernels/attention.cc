// The choice of a way to compute packed attention, and the one by libtorch's own operators.
//
// Letters: T tokens of all sequences, L tokens of one, H heads of queries, Hkv of keys and values, head size D.
#include "kernels/attention.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention_paths.h"
#include "kernels/check.h"

namespace tessera::kernels {
namespace {

constexpr const char* kAttentionName = "packed_attention";

void check_offsets(const at::Tensor& cu_seqlens, std::int64_t T) {
  check(cu_seqlens.dim() == 1 && cu_seqlens.numel() >= 1 && cu_seqlens.scalar_type() == at::kInt &&
            cu_seqlens.is_contiguous(),
        kAttentionName, fmt::format("cu_seqlens as a contiguous [B + 1] int32 but got {}", shape_text(cu_seqlens)));
  if (cu_seqlens.is_cuda()) return;  // reading them would wait for the GPU
  const auto* at = cu_seqlens.const_data_ptr<std::int32_t>();
  const std::int64_t last = cu_seqlens.numel() - 1;
  check(at[0] == 0 && at[last] == T, kAttentionName,
        fmt::format("cu_seqlens from 0 to the {} tokens of q but got {} to {}", T, at[0], at[last]));
  for (std::int64_t b = 0; b < last; ++b) {
    check(at[b] <= at[b + 1], kAttentionName,
          fmt::format("cu_seqlens that never fall but got {} after {} at {}", at[b + 1], at[b], b + 1));
  }
}

}  // namespace

void check_attention_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  check_float_type(q, kAttentionName, "q");
  check(q.dim() == 3 && q.size(1) > 0 && q.size(2) > 0, kAttentionName,
        fmt::format("q as [tokens, heads, head size] but got {}", shape_text(q)));
  for (const auto* other : {&k, &v}) {
    check(other->dim() == 3 && other->sizes() == k.sizes() && other->size(0) == q.size(0) && other->size(1) > 0 &&
              q.size(1) % other->size(1) == 0 && other->size(2) == q.size(2) &&
              other->scalar_type() == q.scalar_type() && other->device() == q.device(),
          kAttentionName,
          fmt::format("q, k and v alike, where the heads of q may be a multiple of those of k and v, but got {} and {}",
                      shape_text(q), shape_text(*other)));
  }
  check(how.cu_seqlens.defined() && how.cu_seqlens.device() == q.device(), kAttentionName,
        "cu_seqlens on the device of q");
  check_offsets(how.cu_seqlens, q.size(0));
  if (how.alibi_slopes) {
    const auto& slopes = *how.alibi_slopes;
    check(slopes.dim() == 1 && slopes.size(0) == q.size(1) && slopes.scalar_type() == at::kFloat &&
              slopes.device() == q.device(),
          kAttentionName,
          fmt::format("alibi_slopes as [{}] float32 on {} but got {} on {}", q.size(1), q.device().str(),
                      shape_text(slopes), slopes.device().str()));
  }
  check(how.dropout >= 0 && how.dropout < 1, kAttentionName,
        fmt::format("a dropout in [0, 1) but got {}", how.dropout));
  check(std::isfinite(how.scale) && how.scale >= 0, kAttentionName,
        fmt::format("a positive scale, or 0 for 1 / sqrt(head size), but got {}", how.scale));
  check(how.window >= 0, kAttentionName,
        fmt::format("a window of at least one token, or 0 for none, but got {}", how.window));
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Span {
  std::int64_t begin, length;
};

std::vector<Span> spans_of(const at::Tensor& cu_seqlens) {
  const auto offsets = cu_seqlens.cpu();
  const auto* at = offsets.const_data_ptr<std::int32_t>();
  std::vector<Span> spans;
  for (std::int64_t b = 0; b + 1 < offsets.numel(); ++b) {
    if (at[b + 1] > at[b]) spans.push_back({at[b], at[b + 1] - at[b]});
  }
  return spans;
}

at::Tensor heads_first(const at::Tensor& x, const Span& span) {  // [H, L, D] float32
  return x.narrow(0, span.begin, span.length).transpose(0, 1).to(at::kFloat);
}

// Of keys or values, one for each query head.
at::Tensor heads_first(const at::Tensor& x, const Span& span, std::int64_t H) {
  const auto own = heads_first(x, span);
  return own.size(0) == H ? own : own.repeat_interleave(H / own.size(0), 0);
}

// The gradient of the Hkv heads that heads_first() repeated.
at::Tensor sum_groups(const at::Tensor& grad, std::int64_t Hkv) {
  return grad.size(0) == Hkv ? grad : grad.unflatten(0, {Hkv, grad.size(0) / Hkv}).sum(1);
}

// The scores of one sequence with bias and mask: [H, L, L].
at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, const PackedAttention& how) {
  const std::int64_t L = q.size(1);
  auto scores = at::bmm(q, k.transpose(1, 2)).mul_(scale_of(how, q.size(2)));
  const auto position = at::arange(L, q.options());
  const auto distance = position.unsqueeze(0) - position.unsqueeze(1);  // j - i
  if (how.alibi_slopes) scores.add_(how.alibi_slopes->view({-1, 1, 1}) * distance);
  auto hidden = distance > 0;
  if (how.window > 0) hidden.logical_or_(distance <= -how.window);
  return scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

// The factor on each probability: 0 or 1 / (1 - p).
at::Tensor dropout_mask(const at::Tensor& probabilities, double p, const at::Generator& generator) {
  return at::bernoulli(at::ones(probabilities.sizes(), probabilities.options()).mul_(1 - p), generator).div_(1 - p);
}

struct OperatorForward {
  at::Tensor out;           // [T, H, D]
  at::Tensor logsumexp;     // [H, T] float32: of each query's scores
  at::Generator generator;  // as it was before the dropout; undefined without dropout
};

OperatorForward forward_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  OperatorForward result;
  result.out = at::empty(q.sizes(), q.options());
  result.logsumexp = at::empty({q.size(1), q.size(0)}, q.options().dtype(at::kFloat));
  at::Generator generator;
  if (drops(how)) {
    generator = at::globalContext().defaultGenerator(q.device());
    result.generator = generator.clone();
  }
  for (const Span& span : spans_of(how.cu_seqlens)) {
    const auto scores = scores_of(heads_first(q, span), heads_first(k, span, q.size(1)), how);
    const auto logsumexp = at::logsumexp(scores, {2}, /*keepdim=*/true);
    auto probabilities = (scores - logsumexp).exp_();
    if (drops(how)) probabilities.mul_(dropout_mask(probabilities, how.dropout, generator));
    result.logsumexp.narrow(1, span.begin, span.length).copy_(logsumexp.squeeze(2));
    const auto out = at::bmm(probabilities, heads_first(v, span, q.size(1)));
    result.out.narrow(0, span.begin, span.length).copy_(out.transpose(0, 1));
  }
  return result;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_of(const at::Tensor& grad, const at::Tensor& q,
                                                           const at::Tensor& k, const at::Tensor& v,
                                                           const PackedAttention& how, const OperatorForward& forward) {
  auto grad_q = at::empty(q.sizes(), q.options());
  auto grad_k = at::empty(k.sizes(), k.options());
  auto grad_v = at::empty(v.sizes(), v.options());
  const std::int64_t H = q.size(1), Hkv = k.size(1);
  at::Generator generator;
  if (drops(how)) generator = forward.generator.clone();
  const double scale = scale_of(how, q.size(2));
  for (const Span& span : spans_of(how.cu_seqlens)) {
    const auto part = [&](at::Tensor& whole) { return whole.narrow(0, span.begin, span.length); };
    const auto sq = heads_first(q, span), sk = heads_first(k, span, H), sv = heads_first(v, span, H);
    const auto sgrad = heads_first(grad, span), sout = heads_first(forward.out, span);
    const auto logsumexp = forward.logsumexp.narrow(1, span.begin, span.length).unsqueeze(2);
    const auto probabilities = (scores_of(sq, sk, how) - logsumexp).exp_();
    auto grad_p = at::bmm(sgrad, sv.transpose(1, 2));
    auto kept = probabilities;
    if (drops(how)) {
      const auto mask = dropout_mask(probabilities, how.dropout, generator);
      grad_p.mul_(mask);
      kept = probabilities * mask;
    }
    const auto delta = (sgrad * sout).sum(2, /*keepdim=*/true);  // = the sum of grad_p * probabilities over keys
    const auto grad_scores = grad_p.sub_(delta).mul_(probabilities).mul_(scale);
    part(grad_v).copy_(sum_groups(at::bmm(kept.transpose(1, 2), sgrad), Hkv).transpose(0, 1));
    part(grad_q).copy_(at::bmm(grad_scores, sk).transpose(0, 1));
    part(grad_k).copy_(sum_groups(at::bmm(grad_scores.transpose(1, 2), sq), Hkv).transpose(0, 1));
  }
  return {grad_q, grad_k, grad_v};
}

class OperatorAttention : public torch::autograd::Function<OperatorAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedAttention& how) {
    const auto result = forward_of(q, k, v, how);
    context->save_for_backward({q, k, v, result.out, result.logsumexp});
    keep(*context, how);
    if (drops(how)) context->saved_data["generator"] = result.generator;
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const PackedAttention how = kept_in(*context);
    OperatorForward forward{saved[3], saved[4], {}};
    if (drops(how)) forward.generator = context->saved_data["generator"].toGenerator();
    auto [grad_q, grad_k, grad_v] = backward_of(grads[0], saved[0], saved[1], saved[2], how, forward);
    return {grad_q, grad_k, grad_v, {}};
  }
};

}  // namespace

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  check_attention_inputs(q, k, v, how);
  if (!q.is_cuda()) return attention_on_cpu(q, k, v, how);
  return flash_serves(q, q.size(2), how) ? attention_by_flash(q, k, v, how) : attention_by_operators(q, k, v, how);
}

at::Tensor packed_attention(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how) {
  check(qkv.dim() == 4 && (parts_dim == 1 || parts_dim == 2) && qkv.size(parts_dim) == 3, kAttentionName,
        fmt::format("q, k and v in dimension 1 or 2 of four but got {} and dimension {}", shape_text(qkv), parts_dim));
  if (!fused_serves(qkv, qkv.size(3), how)) {
    const auto parts = qkv.unbind(parts_dim);  // whose gradient is one stack
    return packed_attention(parts[0], parts[1], parts[2], how);
  }
  const auto part = qkv.detach().select(parts_dim, 0);
  check_attention_inputs(part, part, part, how);
  return attention_by_fused(qkv.contiguous(), parts_dim, how);
}

namespace {

bool fused_takes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  return q.is_contiguous() && k.is_contiguous() && v.is_contiguous() && fused_serves(q, q.size(2), how);
}

}  // namespace

bool attention_has_passes(const at::Tensor& x, std::int64_t D, const PackedAttention& how) {
  return !drops(how) && !how.alibi_slopes && x.numel() > 0 && how.max_seqlen > 0 &&
         (!flash_serves(x, D, how) || flash_serves_as_is(x, D, how));
}

AttentionPass attention_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const PackedAttention& how) {
  if (!q.is_cuda()) return cpu_forward(q, k, v, how, 0);
  if (fused_takes(q, k, v, how)) return fused_forward(q, k, v, how);
  if (flash_serves(q, q.size(2), how)) return flash_forward(q, k, v, q.size(2), how);
  const OperatorForward result = forward_of(q, k, v, how);
  return {result.out, result.logsumexp, {}, {}};
}

AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k,
                                      const at::Tensor& v, const PackedAttention& how, const AttentionPass& pass) {
  if (!q.is_cuda()) return cpu_backward(grad, q, k, v, how, pass, 0);
  if (fused_takes(q, k, v, how)) return fused_backward(grad, q, k, v, how, pass);
  if (flash_serves(q, q.size(2), how)) return flash_backward(grad, q, k, v, q.size(2), how, pass, /*repeats=*/true);
  const auto [grad_q, grad_k, grad_v] = backward_of(grad, q, k, v, how, {pass.out, pass.logsumexp, {}});
  return {grad_q, grad_k, grad_v};
}

at::Tensor attention_by_operators(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how) {
  return OperatorAttention::apply(q, k, v, how);
}

}  // namespace tessera::kernels
