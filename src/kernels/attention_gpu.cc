// FlashAttention takes no bias, but ALiBi's bias, slope_h * (j - i), equals slope_h * j under softmax: a term of the
// key alone. So each head gets kAlibiParts extra elements: a power of two in q, and in k the term, split into parts
// that the half type holds exactly (8 or 11 bits each; three make float32's 24). Their gradients are ignored.
#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "kernels/attention_paths.h"
#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/sizes.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLargestHead = 256;

std::int64_t padded_head(std::int64_t D, bool alibi) {
  const std::int64_t needed = alibi ? D + kAlibiParts : D;
  return (needed + 7) / 8 * 8;
}

// The scores are divided by sqrt(D), or multiplied by a scale. The value in q, a power of two near the divisor, and the
// factor on k's parts make up for that.
struct AlibiScale {
  double in_q, in_k;

  AlibiScale(std::int64_t D, double scale) {
    const double root = scale != 0 ? 1.0 / scale : std::sqrt(static_cast<double>(D));
    in_q = std::exp2(std::round(std::log2(root)));
    in_k = root / in_q;
  }
};

// q, k, v with heads widened to a size that FlashAttention takes: one pass, by our own kernel, if they have as many
// heads.
std::array<at::Tensor, 3> widened(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how) {
  const std::int64_t D = q.size(2), head = padded_head(D, how.alibi_slopes.has_value());
  if (head == D) return {q, k, v};
  if (k.size(1) != q.size(1)) {
    const auto wide = [&](const at::Tensor& x) { return at::constant_pad_nd(x, {0, head - D}); };
    return {wide(q), wide(k), wide(v)};
  }
  const AlibiScale scale(D, how.scale);
  const auto slopes = how.alibi_slopes ? how.alibi_slopes->contiguous() : at::Tensor();
  return cuda_kernels().widen_heads({q, k, v}, head, how.cu_seqlens, slopes, static_cast<float>(scale.in_q),
                                    static_cast<float>(scale.in_k));
}

// Several blocks of keys add to the gradient of one query. libtorch fixes the order only where deterministic algorithms
// are required; where they are merely preferred (warn_only) it warns and adds in any order. Here a preference is
// enough, and `always` needs not even that. The flags are process-wide: anything other threads run in these
// microseconds must be deterministic too, or it would throw; loaders and offloaded updates are.
class FixedOrder {
 public:
  explicit FixedOrder(bool always) {
    auto& context = at::globalContext();
    was_on_ = context.deterministicAlgorithms();
    was_wish_ = context.deterministicAlgorithmsWarnOnly();
    filled_ = context.deterministicFillUninitializedMemory();
    changes_ = was_on_ ? was_wish_ : always;
    if (!changes_) return;
    context.setDeterministicAlgorithms(true, /*warn_only=*/false);
    if (!was_on_) context.setDeterministicFillUninitializedMemory(false);  // it would fill every buffer beforehand
  }
  ~FixedOrder() {
    if (!changes_) return;
    at::globalContext().setDeterministicAlgorithms(was_on_, was_wish_);
    if (!was_on_) at::globalContext().setDeterministicFillUninitializedMemory(filled_);
  }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  bool was_on_ = false, was_wish_ = false, filled_ = false, changes_ = false;
};

// The longest sequence, as FlashAttention is told. Grouped heads of single tokens it would compute as if the heads of a
// group were tokens, which keeps other tensors than its backward takes.
std::int64_t longest_of(const at::Tensor& q, const at::Tensor& k, const PackedAttention& how) {
  return q.size(1) == k.size(1) ? how.max_seqlen : std::max<std::int64_t>(2, how.max_seqlen);
}

// The tokens before its own that a query sees; none: all. FlashAttention takes an int, which any window may pass.
std::optional<std::int64_t> tokens_before(const PackedAttention& how) {
  const bool hides = how.window > 0 && how.window < how.max_seqlen;
  return hides ? std::optional<std::int64_t>(how.window - 1) : std::nullopt;
}

}  // namespace

AttentionPass flash_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t D,
                            const PackedAttention& how) {
  const std::int64_t longest = longest_of(q, k, how);
  AttentionPass pass;
  std::tie(pass.out, pass.logsumexp, pass.rng_state, pass.rng_offset, std::ignore) = at::_flash_attention_forward(
      q, k, v, how.cu_seqlens, how.cu_seqlens, longest, longest, drops(how) ? how.dropout : 0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, scale_of(how, D), tokens_before(how));
  return pass;
}

AttentionGradients flash_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  std::int64_t D, const PackedAttention& how, const AttentionPass& pass, bool repeats) {
  const std::int64_t longest = longest_of(q, k, how);
  const FixedOrder order(repeats);
  auto [grad_q, grad_k, grad_v] =
      at::_flash_attention_backward(grad, q, k, v, pass.out, pass.logsumexp, how.cu_seqlens, how.cu_seqlens, longest,
                                    longest, drops(how) ? how.dropout : 0.0, /*is_causal=*/true, pass.rng_state,
                                    pass.rng_offset, scale_of(how, D), tokens_before(how));
  return {grad_q, grad_k, grad_v};
}

AttentionPass fused_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  AttentionPass pass;
  pass.out = at::empty(q.sizes(), q.options());
  pass.logsumexp = at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat));  // to the base 2
  cuda_kernels().attention_forward({q, k, v}, how, pass.out, pass.logsumexp);
  return pass;
}

AttentionGradients fused_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how, const AttentionPass& pass) {
  const AttentionGradients result{at::empty(q.sizes(), q.options()), at::empty(k.sizes(), k.options()),
                                  at::empty(v.sizes(), v.options())};
  cuda_kernels().attention_backward(grad, {q, k, v}, how, pass.out, pass.logsumexp, {result.q, result.k, result.v});
  return result;
}

namespace {

class FlashAttention : public torch::autograd::Function<FlashAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedAttention& how, bool always_repeats) {
    const std::int64_t D = q.size(2);
    const auto [pq, pk, pv] = widened(q, k, v, how);
    const AttentionPass pass = flash_forward(pq, pk, pv, D, how);
    context->save_for_backward({pq, pk, pv, pass.out, pass.logsumexp, pass.rng_state, pass.rng_offset});
    keep(*context, how);
    context->saved_data["D"] = D;
    context->saved_data["always_repeats"] = always_repeats;
    return pass.out.narrow(2, 0, D).contiguous();
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const PackedAttention how = kept_in(*context);
    const std::int64_t D = context->saved_data["D"].toInt();
    const std::int64_t extra = saved[0].size(2) - D;
    const auto grad = extra == 0 ? grads[0].contiguous() : at::constant_pad_nd(grads[0].contiguous(), {0, extra});
    const AttentionPass pass{saved[3], saved[4], saved[5], saved[6]};
    const auto result = flash_backward(grad, saved[0], saved[1], saved[2], D, how, pass,
                                       context->saved_data["always_repeats"].toBool());
    return {result.q.narrow(2, 0, D), result.k.narrow(2, 0, D), result.v.narrow(2, 0, D), {}, {}};
  }
};

std::array<at::Tensor, 3> parts_of(const at::Tensor& qkv, std::int64_t parts_dim) {
  return {qkv.select(parts_dim, 0), qkv.select(parts_dim, 1), qkv.select(parts_dim, 2)};
}

class AttentionOfProjection : public torch::autograd::Function<AttentionOfProjection> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, std::int64_t parts_dim,
                            const PackedAttention& how) {
    const std::int64_t T = qkv.size(0), H = qkv.size(3 - parts_dim), D = qkv.size(3);
    auto out = at::empty({T, H, D}, qkv.options());
    auto logsumexp = at::empty({T, H}, qkv.options().dtype(at::kFloat));  // to the base 2
    cuda_kernels().attention_forward(parts_of(qkv, parts_dim), how, out, logsumexp);
    context->save_for_backward({qkv, out, logsumexp});
    keep(*context, how);
    context->saved_data["parts_dim"] = parts_dim;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const std::int64_t parts_dim = context->saved_data["parts_dim"].toInt();
    auto grad_qkv = at::empty_like(saved[0]);
    cuda_kernels().attention_backward(grads[0].contiguous(), parts_of(saved[0], parts_dim), kept_in(*context), saved[1],
                                      saved[2], parts_of(grad_qkv, parts_dim));
    return {grad_qkv, {}, {}};
  }
};

}  // namespace

bool flash_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how) {
  return x.is_cuda() && x.scalar_type() != at::kFloat && x.size(0) > 0 && how.max_seqlen > 0 &&
         cuda_kernels().is_ampere(x.device()) && padded_head(D, how.alibi_slopes.has_value()) <= kLargestHead;
}

bool flash_serves_as_is(const at::Tensor& x, std::int64_t D, const PackedAttention& how) {
  return flash_serves(x, D, how) && padded_head(D, how.alibi_slopes.has_value()) == D;
}

at::Tensor attention_by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how) {
  // What came with today's decoders gives the same gradients every time, as everything else of theirs does.
  const bool always_repeats =
      q.size(1) != k.size(1) || how.window != 0 || how.scale != 0 || q.size(2) > kLargestHeadOfAnyOrder;
  // ALiBi's numbers lie in k, but differ from query head to query head.
  const std::int64_t group = how.alibi_slopes ? q.size(1) / k.size(1) : 1;
  const auto own = [&](const at::Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
  return FlashAttention::apply(with_dense_heads(q), with_dense_heads(own(k)), with_dense_heads(own(v)), how,
                               always_repeats);
}

// Attention by our own kernel (attention.cu): nothing is copied, widened or stacked.
bool fused_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how) {
  return x.is_cuda() && x.numel() > 0 && is_half_type(x.scalar_type()) && attention_has_head_size(D) && !drops(how) &&
         how.max_seqlen > 0 && cuda_kernels().is_ampere(x.device());
}

at::Tensor attention_by_fused(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how) {
  return AttentionOfProjection::apply(qkv, parts_dim, how);
}

}  // namespace tessera::kernels
