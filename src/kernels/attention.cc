#include "kernels/attention.h"

#include "kernels/attention_paths.h"
#include "kernels/check.h"

namespace tessera::kernels {
namespace {

constexpr const char* kName = "packed_attention";

void check_offsets(const at::Tensor& cu_seqlens, std::int64_t T) {
  check(cu_seqlens.dim() == 1 && cu_seqlens.numel() >= 1 && cu_seqlens.scalar_type() == at::kInt &&
            cu_seqlens.is_contiguous(),
        kName, fmt::format("cu_seqlens as a contiguous [B + 1] int32 but got {}", shape_text(cu_seqlens)));
  if (cu_seqlens.is_cuda()) return;  // reading them would wait for the GPU
  const auto* at = cu_seqlens.const_data_ptr<std::int32_t>();
  const std::int64_t last = cu_seqlens.numel() - 1;
  check(at[0] == 0 && at[last] == T, kName,
        fmt::format("cu_seqlens from 0 to the {} tokens of q but got {} to {}", T, at[0], at[last]));
  for (std::int64_t b = 0; b < last; ++b) {
    check(at[b] <= at[b + 1], kName,
          fmt::format("cu_seqlens that never fall but got {} after {} at {}", at[b + 1], at[b], b + 1));
  }
}

void check_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  check_float_type(q, kName, "q");
  check(q.dim() == 3 && q.size(1) > 0 && q.size(2) > 0, kName,
        fmt::format("q as [tokens, heads, head size] but got {}", shape_text(q)));
  for (const auto* other : {&k, &v}) {
    check(other->sizes() == q.sizes() && other->scalar_type() == q.scalar_type() && other->device() == q.device(),
          kName, fmt::format("q, k and v alike but got {} and {}", shape_text(q), shape_text(*other)));
  }
  check(how.cu_seqlens.defined() && how.cu_seqlens.device() == q.device(), kName, "cu_seqlens on the device of q");
  check_offsets(how.cu_seqlens, q.size(0));
  if (how.alibi_slopes) {
    const auto& slopes = *how.alibi_slopes;
    check(slopes.dim() == 1 && slopes.size(0) == q.size(1) && slopes.scalar_type() == at::kFloat &&
              slopes.device() == q.device(),
          kName,
          fmt::format("alibi_slopes as [{}] float32 on {} but got {} on {}", q.size(1), q.device().str(),
                      shape_text(slopes), slopes.device().str()));
  }
  check(how.dropout >= 0 && how.dropout < 1, kName, fmt::format("a dropout in [0, 1) but got {}", how.dropout));
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  check_inputs(q, k, v, how);
  if (!q.is_cuda()) return attention_on_cpu(q, k, v, how);
  return flash_serves(q, how) ? attention_by_flash(q, k, v, how) : attention_by_operators(q, k, v, how);
}

at::Tensor packed_attention(const at::Tensor& qkv, std::int64_t parts_dim, const PackedAttention& how) {
  check(qkv.dim() == 4 && (parts_dim == 1 || parts_dim == 2) && qkv.size(parts_dim) == 3, kName,
        fmt::format("q, k and v in dimension 1 or 2 of four but got {} and dimension {}", shape_text(qkv), parts_dim));
  if (!fused_serves(qkv, qkv.size(3), how)) {
    const auto parts = qkv.unbind(parts_dim);  // whose gradient is one stack
    return packed_attention(parts[0], parts[1], parts[2], how);
  }
  const auto part = qkv.detach().select(parts_dim, 0);
  check_inputs(part, part, part, how);
  return attention_by_fused(qkv.contiguous(), parts_dim, how);
}

}  // namespace tessera::kernels
