// Attention of a fused projection by our own kernel (attention.cu): nothing is copied, widened or stacked.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "kernels/attention_paths.h"
#include "kernels/attention_sizes.h"
#include "kernels/check.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
    context->save_for_backward({qkv, how.cu_seqlens, how.alibi_slopes.value_or(at::Tensor()), out, logsumexp});
    context->saved_data["parts_dim"] = parts_dim;
    context->saved_data["max_seqlen"] = how.max_seqlen;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    PackedAttention how;
    how.cu_seqlens = saved[1];
    how.max_seqlen = context->saved_data["max_seqlen"].toInt();
    if (saved[2].defined()) how.alibi_slopes = saved[2];
    const std::int64_t parts_dim = context->saved_data["parts_dim"].toInt();
    auto grad_qkv = at::empty_like(saved[0]);
    cuda_kernels().attention_backward(grads[0].contiguous(), parts_of(saved[0], parts_dim), how, saved[3], saved[4],
                                      parts_of(grad_qkv, parts_dim));
    return {grad_qkv, {}, {}};
  }
};

}  // namespace

bool fused_serves(const at::Tensor& x, std::int64_t D, const PackedAttention& how) {
  return x.is_cuda() && x.numel() > 0 && is_half_type(x.scalar_type()) && attention_has_head_size(D) && !drops(how) &&
         how.max_seqlen > 0 && cuda_kernels().is_ampere(x.device());
}

at::Tensor attention_by_fused(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how) {
  return AttentionOfProjection::apply(qkv, parts_dim, how);
}

}  // namespace tessera::kernels
