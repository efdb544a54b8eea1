#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/bias_gelu.h"
#include "kernels/gradient_room.h"
#include "kernels/kernel_checks.h"
#include "kernels/layer_norm.h"
#include "kernels/transformer_block.h"

namespace tessera::kernels {
namespace {

constexpr double kBlockEpsilon = 1e-5;
constexpr std::array<std::int64_t, 4> kBlockLengths = {1, 63, 70, 200};
using Parameters = std::array<at::Tensor, 12>;  // in TransformerBlock's order

Parameters random_parameters(std::int64_t C, at::ScalarType type, at::Device device) {
  std::uint64_t seed = 10;
  const auto leaf = [&](at::IntArrayRef sizes, double deviation, double mean) {
    return (random_tensor(sizes, type, device, ++seed, deviation) + mean).detach().requires_grad_(true);
  };
  const double narrow = 1 / std::sqrt(static_cast<double>(C));
  return {leaf({C}, 0.1, 1),
          leaf({C}, 0.1, 0),
          leaf({3 * C, C}, narrow, 0),
          leaf({3 * C}, 0.1, 0),
          leaf({C, C}, narrow, 0),
          leaf({C}, 0.1, 0),
          leaf({C}, 0.1, 1),
          leaf({C}, 0.1, 0),
          leaf({4 * C, C}, narrow, 0),
          leaf({4 * C}, 0.1, 0),
          leaf({C, 4 * C}, narrow / 2, 0),
          leaf({C}, 0.1, 0)};
}

using Attention = std::function<at::Tensor(const at::Tensor& qkv)>;

// The block by separate operations; `norm`, `gelu` and `attend` may be libtorch's own or ours.
template <typename Norm, typename Gelu>
at::Tensor by_operations(const at::Tensor& x, const Parameters& p, std::int64_t H, Norm norm, Gelu gelu,
                         const Attention& attend) {
  const std::int64_t T = x.size(0), C = x.size(1);
  const auto qkv = at::linear(norm(x, p[0], p[1]), p[2], p[3]).view({T, H, 3, C / H});
  const auto sum = x + at::linear(attend(qkv).view({T, C}), p[4], p[5]);
  return sum + at::linear(gelu(at::linear(norm(sum, p[6], p[7]), p[8]), p[9]), p[10], p[11]);
}

at::Tensor plain_attention(const at::Tensor& qkv, const at::Tensor& slopes) {
  std::vector<at::Tensor> outs;
  std::int64_t begin = 0;
  for (const std::int64_t length : kBlockLengths) {
    const auto part = [&](std::int64_t i) { return qkv.narrow(0, begin, length).select(2, i).transpose(0, 1); };
    const auto position = at::arange(length, at::kDouble);
    const auto distance = position.unsqueeze(0) - position.unsqueeze(1);
    auto scores = at::matmul(part(0), part(1).transpose(1, 2)) / std::sqrt(static_cast<double>(qkv.size(3)));
    scores = (scores + slopes.to(at::kDouble).view({-1, 1, 1}) * distance).masked_fill(distance > 0, -INFINITY);
    outs.push_back(at::matmul(at::softmax(scores, 2), part(2)).transpose(0, 1));
    begin += length;
  }
  return at::cat(outs, 0);
}

struct Outcome {
  at::Tensor result;
  std::vector<at::Tensor> gradients;  // of x, then of the parameters
};

Outcome backward_of(const at::Tensor& result, const at::Tensor& grad, const at::Tensor& x, const Parameters& p) {
  for (const auto& tensor : p) tensor.mutable_grad().reset();
  x.mutable_grad().reset();
  result.backward(grad);
  Outcome outcome{result.detach(), {x.grad()}};
  for (const auto& tensor : p) outcome.gradients.push_back(tensor.grad());
  return outcome;
}

class BlockCollector : public GradientCollector {
 public:
  at::Tensor room(std::size_t slot) override { return slot < rooms.size() ? rooms[slot] : at::Tensor(); }
  void take(const std::vector<GivenGradient>& gradients) override {
    ++num_gifts;
    for (const auto& [slot, gradient] : gradients) taken[slot] = gradient;
  }
  std::vector<at::Tensor> rooms, taken{12};
  int num_gifts = 0;
};

// Gradients that are collected are autograd's to the bit, and autograd gets none; a frozen parameter has none.
void check_collected(const TransformerBlock& block, const PackedAttention& how, const at::Tensor& x,
                     const at::Tensor& grad, const Parameters& p, const Outcome& by_autograd) {
  constexpr std::size_t kFrozen = 4;
  BlockCollector collector;
  collector.rooms = {at::empty_like(p[0]), at::Tensor(), at::empty_like(p[2])};
  p[kFrozen].requires_grad_(false);
  for (std::size_t i = 0; i < p.size(); ++i) collect_gradient(p[i], collector, i);
  const Outcome outcome = backward_of(transformer_block(x, block, how), grad, x, p);
  for (const auto& parameter : p) stop_collecting(parameter);
  p[kFrozen].requires_grad_(true);
  EXPECT_EQ(collector.num_gifts, 1);
  EXPECT_TRUE(at::equal(outcome.gradients[0], by_autograd.gradients[0]));
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_FALSE(outcome.gradients[1 + i].defined()) << i;
    ASSERT_EQ(collector.taken[i].defined(), i != kFrozen) << i;
    if (i == kFrozen) continue;
    EXPECT_TRUE(at::equal(collector.taken[i], by_autograd.gradients[1 + i])) << i;
  }
  for (const std::size_t i : {0, 2}) EXPECT_TRUE(collector.taken[i].is_same(collector.rooms[i])) << i;
  EXPECT_FALSE(is_collected(p[0]));
}

}  // namespace

void check_transformer_block(std::int64_t H, std::int64_t D, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(fmt::format("{} heads of {} in {}", H, D, c10::toString(type)));
  const std::int64_t C = H * D;
  std::vector<std::int32_t> offsets = {0};
  for (const auto length : kBlockLengths) offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
  const std::int64_t T = offsets.back();
  const auto slopes = at::exp2(at::arange(1, H + 1, at::kFloat) * (-8.0 / static_cast<double>(H)));
  const PackedAttention how{at::tensor(offsets, at::kInt).to(device), 200, slopes.to(device)};
  const auto x = random_tensor({T, C}, type, device, 1).requires_grad_(true),
             grad = random_tensor({T, C}, type, device, 2);
  const Parameters p = random_parameters(C, type, device);

  TransformerBlock block{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], H, kBlockEpsilon};
  ASSERT_TRUE(transformer_block_serves(x, H, how));
  const Outcome node = backward_of(transformer_block(x, block, how), grad, x, p);
  check_collected(block, how, x, grad, p, node);
  const auto our_norm = [](const auto& rows, const auto& weight, const auto& bias) {
    return layer_norm(rows, weight, bias, kBlockEpsilon);
  };
  const Outcome parts =
      backward_of(by_operations(x, p, H, our_norm, bias_gelu,
                                [&](const at::Tensor& qkv) {
                                  return packed_attention(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), how);
                                }),
                  grad, x, p);

  const auto exact_x = double_leaf(x);
  Parameters exact_p;
  std::transform(p.begin(), p.end(), exact_p.begin(), [](const auto& tensor) { return double_leaf(tensor); });
  const auto plain_norm = [C](const auto& rows, const auto& weight, const auto& bias) {
    return at::layer_norm(rows, {C}, weight, bias, kBlockEpsilon);
  };
  const auto plain_gelu = [](const auto& rows, const auto& bias) { return at::gelu(rows + bias, "tanh"); };
  const Outcome exact = backward_of(by_operations(exact_x, exact_p, H, plain_norm, plain_gelu,
                                                  [&](const at::Tensor& qkv) { return plain_attention(qkv, slopes); }),
                                    grad.to(at::kCPU, at::kDouble), exact_x, exact_p);

  // Both round at other places; the node's error may be larger by chance alone.
  const auto compare = [](const at::Tensor& ours, const at::Tensor& separate, const at::Tensor& right, std::size_t i) {
    EXPECT_LE(difference(ours, right), 1.5 * difference(separate, right) + 1e-4) << "at " << i;
  };
  compare(node.result, parts.result, exact.result, 99);
  for (std::size_t i = 0; i < node.gradients.size(); ++i) {
    compare(node.gradients[i], parts.gradients[i], exact.gradients[i], i);
  }
}

}  // namespace tessera::kernels
