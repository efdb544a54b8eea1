#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention_paths.h"
#include "kernels/kernel_checks.h"
#include "kernels/sizes.h"

namespace tessera::kernels {
namespace {

// The position of each token in its sequence: [T] float32.
at::Tensor positions(const at::Tensor& cu_seqlens, std::int64_t T) {
  const auto token = at::arange(T, cu_seqlens.options());
  const auto sequence = at::searchsorted(cu_seqlens, token, /*out_int32=*/false, /*right=*/true).sub_(1);
  return (token - cu_seqlens.index_select(0, sequence)).to(at::kFloat);
}

at::Tensor offsets_of(const std::vector<std::int64_t>& lengths) {
  auto offsets = at::zeros({static_cast<std::int64_t>(lengths.size()) + 1}, at::kInt);
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    offsets.mutable_data_ptr<std::int32_t>()[b + 1] =
        offsets.const_data_ptr<std::int32_t>()[b] + static_cast<std::int32_t>(lengths[b]);
  }
  return offsets;
}

at::Tensor reference_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const AttentionCase& attention, const at::Tensor& slopes) {
  std::vector<at::Tensor> outs;
  std::int64_t begin = 0;
  const std::int64_t H = q.size(1);
  for (const std::int64_t length : attention.lengths) {
    const auto part = [&](const at::Tensor& x) {  // of each query head
      return x.narrow(0, begin, length).transpose(0, 1).repeat_interleave(H / x.size(1), 0);
    };
    const double scale = attention.scale != 0 ? attention.scale : 1 / std::sqrt(static_cast<double>(q.size(2)));
    auto scores = at::matmul(part(q), part(k).transpose(1, 2)) * scale;
    const auto position = at::arange(length, at::kDouble);
    const auto distance = position.unsqueeze(0) - position.unsqueeze(1);
    if (slopes.defined()) scores = scores + slopes.to(at::kDouble).view({-1, 1, 1}) * distance;
    scores = scores.masked_fill(distance > 0, -INFINITY);
    if (attention.window > 0) scores = scores.masked_fill(distance <= -attention.window, -INFINITY);
    outs.push_back(at::matmul(at::softmax(scores, 2), part(v)).transpose(0, 1));
    begin += length;
  }
  return at::cat(outs, 0);
}

class AttentionByPasses : public torch::autograd::Function<AttentionByPasses> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const PackedAttention& how) {
    const AttentionPass pass = attention_forward(q, k, v, how);
    context->save_for_backward({q, k, v, pass.out, pass.logsumexp, pass.rng_state, pass.rng_offset});
    keep(*context, how);
    return pass.out;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const AttentionGradients result = attention_backward(grads[0].contiguous(), saved[0], saved[1], saved[2],
                                                         kept_in(*context), {saved[3], saved[4], saved[5], saved[6]});
    return {result.q, result.k, result.v, {}};
  }
};

at::Tensor slopes_of(std::int64_t num_heads) {  // ALiBi's: 2^(-8 h / H)
  return at::exp2(at::arange(1, num_heads + 1, at::kFloat) * (-8.0 / static_cast<double>(num_heads)));
}

}  // namespace

std::pair<at::Tensor, at::Tensor> with_alibi_dimensions(const at::Tensor& q, const at::Tensor& k,
                                                        const PackedAttention& how) {
  const std::int64_t D = q.size(2), head = (D + kAlibiParts + 7) / 8 * 8;
  // The scores are divided by sqrt(D): a power of two near it in q, and the rest in k, make up for that.
  const double root = std::sqrt(static_cast<double>(D)), in_q = std::exp2(std::round(std::log2(root)));
  const auto wide_q = at::constant_pad_nd(q, {0, head - D}), wide_k = at::constant_pad_nd(k, {0, head - D});
  wide_q.narrow(2, D, kAlibiParts).fill_(in_q);
  auto rest = positions(how.cu_seqlens, q.size(0)).unsqueeze(1) * (*how.alibi_slopes * (root / in_q)).unsqueeze(0);
  for (std::int64_t part = 0; part < kAlibiParts; ++part) {
    const auto held = rest.to(k.scalar_type());
    wide_k.select(2, D + part).copy_(held);
    rest = rest - held.to(at::kFloat);
  }
  return {wide_q, wide_k};
}

const std::vector<AttentionCase>& attention_cases() {
  static const std::vector<AttentionCase> cases = {
      {"one_token", {1}, 1, 8, false, false},
      {"one_token_alibi", {1, 1, 1}, 3, 16, true, true},
      {"odd_sizes", {3, 1, 17, 5}, 5, 24, false, true},
      {"odd_sizes_alibi", {3, 1, 17, 5}, 5, 24, true, false},
      {"empty_sequences", {0, 7, 0, 2, 0}, 2, 32, true, true},
      {"no_tokens", {0, 0}, 2, 32, true, false},
      {"no_sequences", {}, 2, 32, false, false},
      {"head_size_7", {9, 33}, 2, 7, true, true},
      {"several_blocks", {130, 300, 64, 65}, 4, 64, true, true},
      {"several_blocks_no_alibi", {257, 127, 128}, 2, 64, false, true},
      {"head_size_128", {70, 20}, 2, 128, true, false},
  };
  return cases;
}

const std::vector<AttentionCase>& decoder_attention_cases() {
  static const std::vector<AttentionCase> cases = {
      {"grouped_one_token", {1}, 4, 8, false, false, 2},
      {"grouped_single_tokens", {1, 1, 1}, 4, 16, false, true, 1},
      {"grouped_odd_sizes", {3, 1, 17, 5}, 6, 24, false, true, 3},
      {"grouped_no_tokens", {0, 0}, 4, 32, false, false, 2},
      {"grouped_head_size_7", {9, 33}, 4, 7, false, true, 2},
      {"grouped_several_blocks", {130, 300, 0, 64, 65}, 8, 64, false, true, 2},
      {"grouped_alibi", {130, 70}, 6, 64, true, false, 2},
      {"grouped_alibi_head_size_7", {40, 70}, 6, 7, true, true, 2},
      {"one_key_head", {257, 20}, 3, 128, false, false, 1},
      {"window_of_one", {5, 200}, 2, 32, false, false, 0, 1},
      {"window_of_two", {1, 2, 3, 300}, 2, 32, false, true, 0, 2},
      {"window_within_a_block", {400, 37, 129}, 2, 64, false, true, 0, 40},
      {"window_of_a_block", {400, 128, 127}, 2, 64, false, false, 0, 128},
      {"window_of_blocks", {600, 300}, 2, 64, false, true, 0, 290},
      {"window_as_long", {300, 299}, 2, 64, false, false, 0, 300},
      {"window_alibi", {400, 37}, 3, 64, true, true, 0, 130},
      {"scaled", {70, 130}, 2, 32, false, true, 0, 0, 0.3},
      {"scaled_alibi", {70, 130}, 2, 64, true, false, 0, 0, 0.3},
      {"grouped_windowed_scaled", {300, 5, 129}, 8, 96, false, true, 4, 100, 0.08},
      {"head_size_256", {150, 70}, 2, 256, false, false, 1, 0, 0.0625},
      {"head_size_256_windowed", {200, 20}, 4, 256, false, true, 2, 33, 0.0625},
  };
  return cases;
}

void check_attention(const AttentionCase& attention, at::ScalarType type, at::Device device,
                     AttentionFunction& compute) {
  SCOPED_TRACE(attention.name + " " + c10::toString(type));
  const auto offsets = offsets_of(attention.lengths);
  const std::int64_t T = offsets[-1].item<std::int64_t>(), H = attention.num_heads, D = attention.head_size;
  PackedAttention how;
  how.cu_seqlens = offsets.to(device);
  for (const auto length : attention.lengths) how.max_seqlen = std::max(how.max_seqlen, length);
  at::Tensor slopes;
  if (attention.alibi) {
    slopes = slopes_of(H);
    how.alibi_slopes = slopes.to(device);
  }
  const std::int64_t Hkv = attention.num_kv_heads == 0 ? H : attention.num_kv_heads;
  how.window = attention.window;
  how.scale = attention.scale;
  at::Tensor q, k, v, fused;
  if (attention.fused && Hkv != H) {
    fused = random_tensor({T, H + 2 * Hkv, D}, type, device, 1).requires_grad_(true);
    q = fused.narrow(1, 0, H), k = fused.narrow(1, H, Hkv), v = fused.narrow(1, H + Hkv, Hkv);
  } else if (attention.fused) {
    fused = random_tensor({T, H, 3, D}, type, device, 1).requires_grad_(true);
    q = fused.select(2, 0), k = fused.select(2, 1), v = fused.select(2, 2);
  } else {
    q = random_tensor({T, H, D}, type, device, 1).requires_grad_(true);
    k = random_tensor({T, Hkv, D}, type, device, 2).requires_grad_(true);
    v = random_tensor({T, Hkv, D}, type, device, 3).requires_grad_(true);
  }
  const auto grad = random_tensor({T, H, D}, type, device, 4);
  const auto out = compute(q, k, v, how);
  EXPECT_TRUE(out.is_contiguous());
  EXPECT_EQ(out.scalar_type(), type);
  out.backward(grad);
  ASSERT_EQ(out.sizes(), q.sizes());
  if (T == 0) return;

  const auto rq = double_leaf(q), rk = double_leaf(k), rv = double_leaf(v);
  const auto reference = reference_attention(rq, rk, rv, attention, slopes);
  reference.backward(grad.to(at::kCPU, at::kDouble));
  expect_near(out, reference, tolerance(type), "output");
  const auto gradient = [&](const at::Tensor& leaf, int which) {
    if (!attention.fused) return leaf.grad();
    if (Hkv == H) return fused.grad().select(2, which);
    return fused.grad().narrow(1, which == 0 ? 0 : H + (which - 1) * Hkv, which == 0 ? H : Hkv);
  };
  expect_near(gradient(q, 0), rq.grad(), tolerance(type), "gradient of q");
  expect_near(gradient(k, 1), rk.grad(), tolerance(type), "gradient of k");
  expect_near(gradient(v, 2), rv.grad(), tolerance(type), "gradient of v");
}

at::Tensor attention_of_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how) {
  return packed_attention(at::stack({q, k, v}, 2), 2, how);
}

at::Tensor attention_by_passes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const PackedAttention& how) {
  return AttentionByPasses::apply(q.contiguous(), k.contiguous(), v.contiguous(), how);
}

at::Tensor attention_of_parts(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how) {
  return packed_attention(at::stack({q, k, v}, 1), 1, how);
}

void check_attention_dropout(at::ScalarType type, at::Device device, AttentionFunction& compute) {
  const std::vector<std::int64_t> lengths = {200, 150};
  const std::int64_t H = 4, D = 32;
  PackedAttention how;
  how.cu_seqlens = offsets_of(lengths).to(device);
  how.max_seqlen = 200;
  how.dropout = 0.25;
  const auto q = random_tensor({350, H, D}, type, device, 1), k = random_tensor({350, H, D}, type, device, 2);
  const auto v = at::ones({350, H, D}, q.options());
  const auto once = [&](const at::Tensor& value) {
    at::manual_seed(7);
    return compute(q, k, value, how);
  };
  EXPECT_LE(difference(once(v), v), tolerance(type)) << "not in training: nothing is dropped";
  how.training = true;
  const auto out = once(v);  // v is all ones: the sum of the kept probabilities / (1 - p)
  EXPECT_TRUE(at::equal(out, once(v))) << "the same seed drops the same";
  EXPECT_GT(difference(out, v), 0.05);
  EXPECT_NEAR(out.to(at::kFloat).mean().item<double>(), 1.0, 0.03);
  // Linear in v with the same mask: <out(v), g> = <v, grad_v>.
  const auto g = random_tensor({350, H, D}, type, device, 4);
  const auto value = random_tensor({350, H, D}, type, device, 3).requires_grad_(true);
  const auto result = once(value);
  result.backward(g);
  const auto dot = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.detach().to(at::kDouble) * b.detach().to(at::kDouble)).sum().item<double>();
  };
  const double norm = std::sqrt(dot(g, g) * dot(result, result));
  EXPECT_NEAR(dot(result, g) / norm, dot(value, value.grad()) / norm, type == at::kFloat ? 1e-6 : 1e-2);
  // The gradient of q against a finite difference along one direction, with the same mask.
  if (type != at::kFloat) return;
  const auto direction = random_tensor({350, H, D}, type, device, 5);
  const auto q_leaf = q.clone().requires_grad_(true);
  const auto at_q = [&](const at::Tensor& query) {
    at::manual_seed(7);
    return compute(query, k, value.detach(), how);
  };
  at_q(q_leaf).backward(g);
  const double step = 1e-2;
  const double slope = (dot(at_q(q + step * direction), g) - dot(at_q(q - step * direction), g)) / (2 * step);
  EXPECT_NEAR(dot(q_leaf.grad(), direction), slope, 2e-3 * std::max(1.0, std::abs(slope)));
}

}  // namespace tessera::kernels
