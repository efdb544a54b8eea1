// FlashAttention takes no bias, but ALiBi's bias, slope_h * (j - i), equals slope_h * j under softmax: a term of the
// key alone. So each head gets kAlibiParts extra elements: a power of two in q, and in k the term, split into parts
// that the half type holds exactly (8 or 11 bits each; three make float32's 24). Their gradients are ignored.
#include <ATen/Context.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cmath>

#include "kernels/attention_paths.h"
#include "kernels/attention_sizes.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLargestHead = 256;

std::int64_t padded_head(std::int64_t D, bool alibi) {
  const std::int64_t needed = alibi ? D + kAlibiParts : D;
  return (needed + 7) / 8 * 8;
}

at::Tensor padded(const at::Tensor& x, std::int64_t head) {
  return x.size(2) == head ? x : at::constant_pad_nd(x, {0, head - x.size(2)});
}

// The scores are divided by sqrt(D). The value in q, a power of two near it, and the factor on k's parts make up for
// that.
struct AlibiScale {
  double in_q, in_k;

  explicit AlibiScale(std::int64_t D) {
    const double root = std::sqrt(static_cast<double>(D));
    in_q = std::exp2(std::round(std::log2(root)));
    in_k = root / in_q;
  }
};

// The position of each token in its sequence: [T] float32. Does not wait for the GPU.
at::Tensor positions(const at::Tensor& cu_seqlens, std::int64_t T) {
  const auto token = at::arange(T, cu_seqlens.options());
  const auto sequence = at::searchsorted(cu_seqlens, token, /*out_int32=*/false, /*right=*/true).sub_(1);
  return (token - cu_seqlens.index_select(0, sequence)).to(at::kFloat);
}

// q, k, v with heads widened to a size that FlashAttention takes: one pass, by our own kernel.
std::array<at::Tensor, 3> widened(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const PackedAttention& how) {
  const std::int64_t D = q.size(2), head = padded_head(D, how.alibi_slopes.has_value());
  if (head == D) return {q, k, v};
  const AlibiScale scale(D);
  const auto slopes = how.alibi_slopes ? how.alibi_slopes->contiguous() : at::Tensor();
  return cuda_kernels().widen_heads({q, k, v}, head, how.cu_seqlens, slopes, static_cast<float>(scale.in_q),
                                    static_cast<float>(scale.in_k));
}

// Several blocks of keys add to the gradient of one query. libtorch fixes the order only where deterministic algorithms
// are required; where they are merely preferred (warn_only) it warns and adds in any order. Here a preference is
// enough. The flag is process-wide: anything other threads run in these microseconds must be deterministic too, or it
// would throw; loaders and offloaded updates are.
class FixedOrderIfWished {
 public:
  FixedOrderIfWished()
      : is_wish_(at::globalContext().deterministicAlgorithms() &&
                 at::globalContext().deterministicAlgorithmsWarnOnly()) {
    if (is_wish_) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~FixedOrderIfWished() {
    if (is_wish_) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  }
  FixedOrderIfWished(const FixedOrderIfWished&) = delete;
  FixedOrderIfWished& operator=(const FixedOrderIfWished&) = delete;

 private:
  bool is_wish_;
};

class FlashAttention : public torch::autograd::Function<FlashAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedAttention& how) {
    const std::int64_t D = q.size(2);
    const auto [pq, pk, pv] = widened(q, k, v, how);
    const double dropout = drops(how) ? how.dropout : 0.0, scale = 1.0 / std::sqrt(static_cast<double>(D));
    auto [out, logsumexp, rng_state, rng_offset, mask] =
        at::_flash_attention_forward(pq, pk, pv, how.cu_seqlens, how.cu_seqlens, how.max_seqlen, how.max_seqlen,
                                     dropout, /*is_causal=*/true, /*return_debug_mask=*/false, scale);
    context->save_for_backward({pq, pk, pv, how.cu_seqlens, out, logsumexp, rng_state, rng_offset});
    context->saved_data["max_seqlen"] = how.max_seqlen;
    context->saved_data["dropout"] = dropout;
    context->saved_data["D"] = D;
    return out.narrow(2, 0, D).contiguous();
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const std::int64_t D = context->saved_data["D"].toInt(), max_seqlen = context->saved_data["max_seqlen"].toInt();
    const double scale = 1.0 / std::sqrt(static_cast<double>(D));
    const auto grad = padded(grads[0].contiguous(), saved[0].size(2));
    const FixedOrderIfWished order;
    auto [grad_q, grad_k, grad_v] = at::_flash_attention_backward(
        grad, saved[0], saved[1], saved[2], saved[4], saved[5], saved[3], saved[3], max_seqlen, max_seqlen,
        context->saved_data["dropout"].toDouble(), /*is_causal=*/true, saved[6], saved[7], scale);
    return {grad_q.narrow(2, 0, D), grad_k.narrow(2, 0, D), grad_v.narrow(2, 0, D), {}};
  }
};

}  // namespace

bool flash_serves(const at::Tensor& q, const PackedAttention& how) {
  return q.is_cuda() && q.scalar_type() != at::kFloat && q.size(0) > 0 && how.max_seqlen > 0 &&
         cuda_kernels().is_ampere(q.device()) && padded_head(q.size(2), how.alibi_slopes.has_value()) <= kLargestHead;
}

std::pair<at::Tensor, at::Tensor> with_alibi_dimensions(const at::Tensor& q, const at::Tensor& k,
                                                        const PackedAttention& how) {
  const std::int64_t D = q.size(2), head = padded_head(D, true);
  const AlibiScale scale(D);
  const auto wide_q = padded(q, head), wide_k = padded(k, head);
  wide_q.narrow(2, D, kAlibiParts).fill_(scale.in_q);
  auto rest = positions(how.cu_seqlens, q.size(0)).unsqueeze(1) * (*how.alibi_slopes * scale.in_k).unsqueeze(0);
  for (std::int64_t part = 0; part < kAlibiParts; ++part) {
    const auto held = rest.to(k.scalar_type());
    wide_k.select(2, D + part).copy_(held);
    rest = rest - held.to(at::kFloat);
  }
  return {wide_q, wide_k};
}

at::Tensor attention_by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how) {
  const auto dense = [](const at::Tensor& x) { return x.stride(2) == 1 ? x : x.contiguous(); };
  return FlashAttention::apply(dense(q), dense(k), dense(v), how);
}

}  // namespace tessera::kernels
