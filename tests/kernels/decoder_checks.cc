// RMS norm, rotary embedding and the gated linear layer against libtorch's operators in float64.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <optional>

#include "kernels/gated_linear.h"
#include "kernels/kernel_checks.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"

namespace tessera::kernels {
namespace {

constexpr double kEpsilon = 1e-6;

at::Tensor plain_rms_norm(const at::Tensor& x, const at::Tensor& weight, RmsWeight how) {
  const auto normed = x * at::rsqrt(x.square().mean(-1, /*keepdim=*/true) + kEpsilon);
  return normed * (how == RmsWeight::kOnePlus ? weight + 1 : weight);
}

// transformers' operations, in their order and types.
at::Tensor rounded_rms_norm(const at::Tensor& x, const at::Tensor& weight, RmsWeight how) {
  const auto wide = x.to(at::kFloat);
  const auto normed = wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + kEpsilon);
  if (how == RmsWeight::kAfterRounding) return weight * normed.to(x.scalar_type());
  if (how == RmsWeight::kBeforeRounding) return (weight.to(at::kFloat) * normed).to(x.scalar_type());
  return (normed * (1.0 + weight.to(at::kFloat))).to(x.scalar_type());
}

// The share of equal numbers: the order of a sum of squares moves the last bit of few roundings, another order of
// rounding that of about every third.
double share_of_equal(const at::Tensor& value, const at::Tensor& reference) {
  if (value.numel() == 0) return 1;
  return (value == reference).to(at::kDouble).mean().item<double>();
}

at::Tensor leaf_of(at::IntArrayRef sizes, at::ScalarType type, at::Device device, std::uint64_t seed,
                   double deviation = 1.0) {
  return random_tensor(sizes, type, device, seed, deviation).requires_grad_(true);
}

struct Rotation {
  at::Tensor cos, sin;  // [T, half]
};

Rotation rotation_of(const RotaryCase& rotary) {
  const std::int64_t half = rotary.rotated / 2;
  const auto position = at::arange(rotary.T, at::kDouble).unsqueeze(1) * 3 + 1;
  const auto frequency = at::pow(10000.0, at::arange(half, at::kDouble) * (-1.0 / std::max<double>(1, half)));
  const auto angle = position * frequency.unsqueeze(0);
  return {(at::cos(angle) * 1.1).to(at::kFloat), (at::sin(angle) * 1.1).to(at::kFloat)};  // a factor, as yarn has
}

// x * cos + rotate_half(x) * sin, of the first numbers of each head.
at::Tensor plain_rotary(const at::Tensor& x, const Rotation& table) {
  const std::int64_t half = table.cos.size(1), rotated = 2 * half;
  const auto whole = [](const at::Tensor& part) { return at::cat({part, part}, 1).unsqueeze(1).to(at::kDouble); };
  const auto first = x.narrow(2, 0, rotated);
  const auto turned = at::cat({-first.narrow(2, half, half), first.narrow(2, 0, half)}, 2);
  const auto result = first * whole(table.cos) + turned * whole(table.sin);
  return at::cat({result, x.narrow(2, rotated, x.size(2) - rotated)}, 2);
}

}  // namespace

void check_rms_norm(const RowsCase& rows, RmsWeight how, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(fmt::format("[{}] {} how {}", fmt::join(rows.sizes, ", "), c10::toString(type), static_cast<int>(how)));
  const std::int64_t C = rows.sizes.back();
  const auto x = leaf_of(rows.sizes, type, device, 1, 3.0), residual = leaf_of(rows.sizes, type, device, 2, 2.0);
  const auto weight = leaf_of({C}, type, device, 3);
  const auto grad = random_tensor(rows.sizes, type, device, 5), grad_sum = random_tensor(rows.sizes, type, device, 6);
  const auto rx = double_leaf(x), rresidual = double_leaf(residual), rw = double_leaf(weight);
  const auto [sum, normed] = residual_rms_norm(x, residual, weight, kEpsilon, how);
  torch::autograd::backward({sum, normed}, {grad_sum, grad});
  const auto rsum = rx + rresidual;
  // The norm takes the sum as its type holds it: rounded; the gradient passes through.
  const auto rounded = rsum + (rsum.detach().to(type).to(at::kDouble) - rsum.detach());
  const auto reference = plain_rms_norm(rounded, rw, how);
  torch::autograd::backward({rsum, reference}, {grad_sum.to(at::kCPU, at::kDouble), grad.to(at::kCPU, at::kDouble)});
  expect_near(sum, rsum, tolerance(type), "sum");
  expect_near(normed, reference, tolerance(type), "output");
  expect_near(x.grad(), rx.grad(), tolerance(type), "gradient of x");
  expect_near(residual.grad(), rresidual.grad(), tolerance(type), "gradient of the residual");
  expect_near(weight.grad(), rw.grad(), tolerance(type), "gradient of the weight");
  if (type != at::kFloat) {
    EXPECT_TRUE(at::equal(sum, x.detach() + residual.detach())) << "one rounding";
    EXPECT_GE(share_of_equal(normed, rounded_rms_norm(sum.detach(), weight.detach(), how)), 0.98);
  }

  const auto alone = double_leaf(sum);
  const auto leaf = sum.detach().clone().requires_grad_(true);
  const auto out = rms_norm(leaf, weight.detach(), kEpsilon, how);
  EXPECT_TRUE(at::equal(out, normed)) << "alone it has the bits of that after a residual";
  out.backward(grad);
  const auto alone_reference = plain_rms_norm(alone, rw.detach(), how);
  alone_reference.backward(grad.to(at::kCPU, at::kDouble));
  expect_near(leaf.grad(), alone.grad(), tolerance(type), "gradient of the norm alone, of a frozen weight");
}

void check_rms_norm_of_heads(RmsWeight how, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(fmt::format("{} how {}", c10::toString(type), static_cast<int>(how)));
  for (const std::int64_t D : {7, 64, 128, 256}) {
    // Queries, keys and values of one projection, then heads that are not next to one another.
    const auto qkv = leaf_of({70, 6, D}, type, device, 1, 2.0), weight = leaf_of({D}, type, device, 2);
    for (const auto& heads : {qkv.narrow(1, 3, 2), qkv.slice(1, 1, 6, 3), qkv.transpose(0, 1).narrow(1, 4, 2)}) {
      const auto once = [&](const at::Tensor& x) {
        qkv.mutable_grad().reset();
        weight.mutable_grad().reset();
        const auto out = rms_norm(x, weight, kEpsilon, how);
        EXPECT_TRUE(out.is_contiguous());
        out.backward(random_tensor(x.sizes(), type, device, 3));
        return std::vector<at::Tensor>{out.detach(), qkv.grad(), weight.grad()};
      };
      const auto strided = once(heads), dense = once(heads.contiguous());
      for (std::size_t i = 0; i < strided.size(); ++i) EXPECT_TRUE(at::equal(strided[i], dense[i])) << D << " " << i;
      const auto rx = double_leaf(heads), rw = double_leaf(weight);
      const auto reference = plain_rms_norm(rx, rw, how);
      reference.backward(random_tensor(heads.sizes(), type, at::kCPU, 3).to(at::kDouble));
      expect_near(strided[0], reference, tolerance(type), "output");
      expect_near(strided[2], rw.grad(), tolerance(type), "gradient of the weight");
      const auto of_x = strided[1].to(at::kCPU, at::kDouble);
      EXPECT_NEAR(of_x.sum().item<double>(), rx.grad().sum().item<double>(),
                  tolerance(type) * rx.grad().abs().sum().item<double>());
    }
  }
}

const std::vector<RotaryCase>& rotary_cases() {
  static const std::vector<RotaryCase> cases = {{1, 1, 2, 2},      {3, 2, 7, 4},      {5, 3, 64, 64}, {0, 2, 8, 8},
                                                {70, 4, 128, 128}, {33, 2, 96, 32},   {9, 2, 10, 0},  {40, 2, 256, 256},
                                                {17, 3, 80, 20},   {2, 1, 1200, 1100}};
  return cases;
}

void check_rotary(const RotaryCase& rotary_case, at::ScalarType type, at::Device device) {
  const auto [T, H, D, rotated] = rotary_case;
  SCOPED_TRACE(fmt::format("[{}, {}, {}] rotated {} {}", T, H, D, rotated, c10::toString(type)));
  const Rotation plain = rotation_of(rotary_case);
  const RotaryTable table{plain.cos.to(device), plain.sin.to(device)};
  const auto projection = leaf_of({T, 3 * H, D}, type, device, 1);
  const auto grad = random_tensor({T, H, D}, type, device, 2);
  for (const auto& heads : {projection.narrow(1, H, H), projection.slice(1, 1, 3 * H, 3)}) {
    projection.mutable_grad().reset();
    const auto out = rotary(heads, table);
    EXPECT_TRUE(out.is_contiguous());
    EXPECT_EQ(out.scalar_type(), type);
    out.backward(grad);
    const auto rprojection = double_leaf(projection);
    const bool is_slice = heads.stride(1) != D;
    const auto rheads = is_slice ? rprojection.slice(1, 1, 3 * H, 3) : rprojection.narrow(1, H, H);
    const auto reference = plain_rotary(rheads, plain);
    reference.backward(grad.to(at::kCPU, at::kDouble));
    expect_near(out, reference, tolerance(type) / 4, "output");
    expect_near(projection.grad(), rprojection.grad(), tolerance(type) / 4, "gradient");
    EXPECT_TRUE(at::equal(rotary(heads.contiguous(), table), out)) << "dense heads";
    if (type != at::kFloat) {  // rounded once
      EXPECT_GE(share_of_equal(out.cpu(), reference.to(at::kFloat).to(type)), 0.98);
    }
  }
}

const std::vector<GatedCase>& gated_cases() {
  static const std::vector<GatedCase> cases = {{1, 1, 1, false, false},    {3, 7, 5, true, true},
                                               {0, 16, 8, true, false},    {17, 1000, 24, false, true},
                                               {130, 257, 9, true, false}, {64, 1536, 40, false, true}};
  return cases;
}

void check_gated_linear(const GatedCase& gated, GateActivation activation, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(
      fmt::format("[{}, {}] {} activation {}", gated.T, gated.F, c10::toString(type), static_cast<int>(activation)));
  const std::int64_t T = gated.T, F = gated.F, C = gated.C;
  const auto leaf = [&](at::IntArrayRef sizes, std::uint64_t seed, double deviation) {
    return leaf_of(sizes, type, device, seed, deviation);
  };
  // Numbers for which a sum over F is about one.
  const auto weight = leaf({C, F}, 3, 1 / std::sqrt(static_cast<double>(F))), bias = leaf({C}, 4, 1);
  at::Tensor gate, up, both;
  if (gated.one_projection) {
    both = leaf({T, 2 * F}, 1, 2);
    gate = both.narrow(1, 0, F), up = both.narrow(1, F, F);
  } else {
    gate = leaf({T, F}, 1, 2), up = leaf({T, F}, 2, 2);
  }
  const auto own_bias = gated.bias ? bias : at::Tensor();
  const auto out = gated_linear(gate, up, weight, own_bias, activation);
  const auto grad = random_tensor({T, C}, type, device, 5);
  out.backward(grad);
  const auto rgate = double_leaf(gate), rup = double_leaf(up), rweight = double_leaf(weight), rbias = double_leaf(bias);
  const auto active = activation == GateActivation::kSilu
                          ? rgate * at::sigmoid(rgate)
                          : rgate * 0.5 * (1 + at::tanh(0.79788456 * rgate * (1 + 0.044715 * rgate * rgate)));
  const auto reference =
      at::linear(active * rup, rweight, gated.bias ? std::optional<at::Tensor>(rbias) : std::nullopt);
  reference.backward(grad.to(at::kCPU, at::kDouble));
  expect_near(out, reference, tolerance(type), "output");
  const auto of_gate = both.defined() ? both.grad().narrow(1, 0, F) : gate.grad();
  const auto of_up = both.defined() ? both.grad().narrow(1, F, F) : up.grad();
  expect_near(of_gate, rgate.grad(), tolerance(type), "gradient of the gate");
  expect_near(of_up, rup.grad(), tolerance(type), "gradient of what it gates");
  expect_near(weight.grad(), rweight.grad(), tolerance(type), "gradient of the weight");
  if (gated.bias) expect_near(bias.grad(), rbias.grad(), tolerance(type), "gradient of the bias");
}

}  // namespace tessera::kernels
