// A block of today's decoders as one node against the same by single operators, which decoder_checks.cc and
// attention_checks.cc hold against float64.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "kernels/gated_block.h"
#include "kernels/gated_linear.h"
#include "kernels/gradient_room.h"
#include "kernels/kernel_checks.h"
#include "kernels/rms_norm.h"

namespace tessera::kernels {
namespace {

// A block of today's decoders: which of its parts there are.
struct GatedBlockCase {
  std::string name;
  std::int64_t num_heads = 4, num_kv_heads = 2, head_size = 16;
  bool one_projection = false;  // for q, k and v; for gate and up
  bool qkv_bias = false, other_biases = false;
  bool norms_heads = false, norms_all_heads = false;
  bool norms_before = true, norms_after = false;
  std::int64_t rotated = 16;  // numbers of each head; 0: no rotary positions
  std::int64_t window = 0;
  double scale = 0;
  RmsWeight norm_weight = RmsWeight::kAfterRounding;
  GateActivation activation = GateActivation::kSilu;
};

constexpr std::int64_t kHidden = 48, kInner = 88;
constexpr std::initializer_list<std::int64_t> kLengths = {1, 63, 0, 70, 140};

using Projection = GatedBlock::Projection;
constexpr std::array kProjections = {
    &GatedBlock::query_key_value, &GatedBlock::query, &GatedBlock::key, &GatedBlock::value, &GatedBlock::output,
    &GatedBlock::gate_up,         &GatedBlock::gate,  &GatedBlock::up,  &GatedBlock::down};
constexpr std::array kNorms = {
    &GatedBlock::norm_before_attention, &GatedBlock::norm_after_attention, &GatedBlock::norm_before_mlp,
    &GatedBlock::norm_after_mlp,        &GatedBlock::query_norm,           &GatedBlock::key_norm};

template <typename F>
void for_each_parameter(GatedBlock& block, F f) {
  for (const auto member : kProjections) {
    if ((block.*member).weight.defined()) f((block.*member).weight);
    if ((block.*member).bias.defined()) f((block.*member).bias);
  }
  for (const auto member : kNorms) {
    if ((block.*member).defined()) f(block.*member);
  }
}

GatedBlock random_block(const GatedBlockCase& with, at::ScalarType type, at::Device device) {
  std::uint64_t seed = 10;
  const auto leaf = [&](at::IntArrayRef sizes, double deviation, double mean) {
    return (random_tensor(sizes, type, device, ++seed, deviation) + mean).detach().requires_grad_(true);
  };
  const auto projection = [&](std::int64_t out, std::int64_t in, bool has_bias) {
    return Projection{leaf({out, in}, 1 / std::sqrt(static_cast<double>(in)), 0),
                      has_bias ? leaf({out}, 0.1, 0) : at::Tensor()};
  };
  const auto norm = [&](std::int64_t width) {
    return leaf({width}, 0.1, with.norm_weight == RmsWeight::kOnePlus ? 0 : 1);
  };
  const std::int64_t H = with.num_heads, Hkv = with.num_kv_heads, D = with.head_size;
  GatedBlock b;
  if (with.one_projection) {
    b.query_key_value = projection((H + 2 * Hkv) * D, kHidden, with.qkv_bias);
    b.gate_up = projection(2 * kInner, kHidden, with.other_biases);
  } else {
    b.query = projection(H * D, kHidden, with.qkv_bias);
    b.key = projection(Hkv * D, kHidden, with.qkv_bias);
    b.value = projection(Hkv * D, kHidden, with.qkv_bias);
    b.gate = projection(kInner, kHidden, with.other_biases);
    b.up = projection(kInner, kHidden, with.other_biases);
  }
  b.output = projection(kHidden, H * D, with.other_biases);
  b.down = projection(kHidden, kInner, with.other_biases);
  if (with.norms_before) b.norm_before_attention = norm(kHidden), b.norm_before_mlp = norm(kHidden);
  if (with.norms_after) b.norm_after_attention = norm(kHidden), b.norm_after_mlp = norm(kHidden);
  if (with.norms_heads) b.query_norm = norm(D), b.key_norm = norm(D);
  if (with.norms_all_heads) b.query_norm = norm(H * D), b.key_norm = norm(Hkv * D);
  b.num_heads = H, b.num_key_value_heads = Hkv, b.head_size = D;
  b.epsilon = 1e-6;
  b.norm_weight = with.norm_weight;
  b.activation = with.activation;
  return b;
}

struct Setting {
  PackedAttention how;
  std::optional<RotaryTable> rotary;
  std::int64_t T;
};

Setting setting_of(const GatedBlockCase& with, at::Device device) {
  std::vector<std::int32_t> offsets = {0};
  for (const auto length : kLengths) offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
  Setting setting{{at::tensor(offsets, at::kInt).to(device), 140, {}}, {}, offsets.back()};
  setting.how.window = with.window;
  setting.how.scale = with.scale;
  if (with.rotated == 0) return setting;
  const at::Tensor frequencies = at::pow(100.0, at::arange(with.rotated / 2, at::kFloat) * -0.1);
  const at::Tensor angles = at::arange(setting.T, at::kFloat).unsqueeze(1) * frequencies;
  setting.rotary = RotaryTable{angles.cos().to(device), angles.sin().to(device)};
  return setting;
}

// As DecoderBlock computes it where the node does not serve.
at::Tensor by_operators(const at::Tensor& x, const GatedBlock& b, const Setting& with) {
  const std::int64_t T = x.size(0), H = b.num_heads, Hkv = b.num_key_value_heads, D = b.head_size;
  const auto project = [](const at::Tensor& input, const Projection& to) {
    return at::linear(input, to.weight, to.bias.defined() ? std::optional(to.bias) : std::nullopt);
  };
  const auto norm = [&](const at::Tensor& input, const at::Tensor& weight) {
    return weight.defined() ? rms_norm(input, weight, b.epsilon, b.norm_weight) : input;
  };
  const at::Tensor normed = norm(x, b.norm_before_attention);
  at::Tensor q, k, v, gate, up;
  if (b.query_key_value.weight.defined()) {
    const auto all = project(normed, b.query_key_value).split_with_sizes({H * D, Hkv * D, Hkv * D}, 1);
    q = all[0], k = all[1], v = all[2];
  } else {
    q = project(normed, b.query), k = project(normed, b.key), v = project(normed, b.value);
  }
  const auto heads = [&](const at::Tensor& rows, std::int64_t count, const at::Tensor& weight) {
    const bool is_whole = weight.defined() && weight.numel() != D;
    at::Tensor result = (is_whole ? norm(rows, weight) : rows).unflatten(1, {count, D});
    if (!is_whole) result = norm(result, weight);
    return with.rotary ? rotary(result, *with.rotary) : result;
  };
  q = heads(q, H, b.query_norm), k = heads(k, Hkv, b.key_norm), v = v.unflatten(1, {Hkv, D});
  const at::Tensor context = packed_attention(q, k, v, with.how).view({T, H * D});
  const at::Tensor attended = norm(project(context, b.output), b.norm_after_attention);
  at::Tensor sum = attended + x, input = sum;
  if (b.norm_before_mlp.defined()) {
    std::tie(sum, input) = residual_rms_norm(attended, x, b.norm_before_mlp, b.epsilon, b.norm_weight);
  }
  if (b.gate_up.weight.defined()) {
    const auto both = project(input, b.gate_up).chunk(2, 1);
    gate = both[0], up = both[1];
  } else {
    gate = project(input, b.gate), up = project(input, b.up);
  }
  return norm(gated_linear(gate, up, b.down.weight, b.down.bias, b.activation), b.norm_after_mlp) + sum;
}

// The result, then the gradients of x and of the parameters; undefined where there is none.
std::vector<at::Tensor> outcome_of(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x, GatedBlock& b) {
  x.mutable_grad().reset();
  for_each_parameter(b, [](const at::Tensor& parameter) { parameter.mutable_grad().reset(); });
  out.backward(grad);
  std::vector<at::Tensor> all = {out.detach(), x.grad()};
  for_each_parameter(b, [&](const at::Tensor& parameter) { all.push_back(parameter.grad()); });
  return all;
}

class TestCollector : public GradientCollector {
 public:
  at::Tensor room(std::size_t slot) override { return slot == 0 ? room_ : at::Tensor(); }
  void take(const std::vector<GivenGradient>& gradients) override {
    for (const auto& [slot, gradient] : gradients) {
      EXPECT_FALSE(taken[slot].defined()) << "each parameter once";
      taken[slot] = gradient;
    }
  }
  std::vector<at::Tensor> taken{32};
  at::Tensor room_;
};

void expect_same_bits(const std::vector<at::Tensor>& value, const std::vector<at::Tensor>& reference,
                      const std::set<std::size_t>& absent, const char* what) {
  ASSERT_EQ(value.size(), reference.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    ASSERT_EQ(value[i].defined(), !absent.contains(i)) << what << ", at " << i;
    EXPECT_TRUE(!value[i].defined() || at::equal(value[i], reference[i])) << what << ", at " << i;
  }
}

// Parameters that are frozen get no gradient and change no other's; collected gradients are autograd's to the bit.
void check_other_ways(const at::Tensor& x, const at::Tensor& grad, GatedBlock& b, const Setting& with,
                      const std::vector<at::Tensor>& expected) {
  const auto node = [&] { return gated_block(x, b, with.rotary, with.how); };
  expect_same_bits(outcome_of(node(), grad, x, b), expected, {}, "again");
  {
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(node(), expected[0])) << "without gradients";
  }
  std::vector<at::Tensor> parameters;
  for_each_parameter(b, [&](const at::Tensor& parameter) { parameters.push_back(parameter); });
  for (const std::size_t first : {0, 1}) {
    std::set<std::size_t> frozen;
    for (std::size_t i = first; i < parameters.size(); i += 2) {
      frozen.insert(2 + i);
      parameters[i].requires_grad_(false);
    }
    expect_same_bits(outcome_of(node(), grad, x, b), expected, frozen, "with frozen ones");
    x.requires_grad_(false);
    frozen.insert(1);
    expect_same_bits(outcome_of(node(), grad, x, b), expected, frozen, "and without the gradient of x");
    x.requires_grad_(true);
    for (const at::Tensor& parameter : parameters) parameter.requires_grad_(true);
  }

  TestCollector collector;
  collector.room_ = at::empty_like(parameters[0]);
  for (std::size_t i = 0; i < parameters.size(); ++i) collect_gradient(parameters[i], collector, i);
  auto collected = outcome_of(node(), grad, x, b);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    stop_collecting(parameters[i]);
    EXPECT_FALSE(collected[2 + i].defined()) << "autograd gets none";
    collected[2 + i] = collector.taken[i];
  }
  EXPECT_TRUE(collector.taken[0].is_same(collector.room_));
  expect_same_bits(collected, expected, {}, "collected");

  const at::Tensor out = node();
  out.backward(grad, /*retain_graph=*/true);
  EXPECT_ANY_THROW(out.backward(grad));
}

// Small ones of every family, and heads of 64 to 256.
const std::vector<GatedBlockCase>& gated_block_cases() {
  constexpr auto kBefore = RmsWeight::kBeforeRounding, kOnePlus = RmsWeight::kOnePlus;
  constexpr auto kGelu = GateActivation::kGelu;
  static const std::vector<GatedBlockCase> cases = {
      {.name = "llama"},
      {.name = "llama, all heads alike", .num_kv_heads = 4},
      {.name = "llama, one key head, biases", .num_kv_heads = 1, .qkv_bias = true, .other_biases = true},
      {.name = "qwen2", .qkv_bias = true},
      {.name = "qwen3", .norms_heads = true},
      {.name = "mistral", .window = 33},
      {.name = "gemma3",
       .norms_heads = true,
       .norms_after = true,
       .window = 50,
       .scale = 0.2,
       .norm_weight = kOnePlus,
       .activation = kGelu},
      {.name = "phi3", .num_kv_heads = 4, .one_projection = true},
      {.name = "phi4", .one_projection = true, .rotated = 8},
      {.name = "phi3 with biases", .one_projection = true, .qkv_bias = true, .other_biases = true, .window = 17},
      {.name = "one projection, norms of heads", .one_projection = true, .norms_heads = true},
      {.name = "one projection, a norm of all heads", .one_projection = true, .norms_all_heads = true},
      {.name = "one projection without positions", .num_kv_heads = 4, .one_projection = true, .rotated = 0},
      {.name = "olmo2", .norms_all_heads = true, .norms_before = false, .norms_after = true, .norm_weight = kBefore},
      {.name = "smollm3 without positions", .rotated = 0},
      {.name = "no norms", .norms_before = false},
      {.name = "norms of heads without positions", .norms_heads = true, .rotated = 0},
      {.name = "heads of 64", .num_heads = 3, .num_kv_heads = 3, .head_size = 64, .rotated = 64},
      {.name = "groups of heads of 64", .num_heads = 6, .num_kv_heads = 2, .head_size = 64, .rotated = 64},
      {.name = "heads of 128",
       .num_heads = 2,
       .num_kv_heads = 2,
       .head_size = 128,
       .one_projection = true,
       .rotated = 128},
      {.name = "heads of 256", .num_heads = 2, .num_kv_heads = 1, .head_size = 256, .rotated = 256, .scale = 0.1},
  };
  return cases;
}

double rms_error(const at::Tensor& value, const at::Tensor& exact) {
  const auto wide = [](const at::Tensor& tensor) { return tensor.detach().to(at::kCPU, at::kDouble); };
  const double size = wide(exact).square().mean().item<double>();
  return std::sqrt((wide(value) - wide(exact)).square().mean().item<double>() / size);
}

// The node's error, in half types, in multiples of that of single operators; 1 in float32.
double error_of_gated_block(const GatedBlockCase& with, at::ScalarType type, at::Device device) {
  SCOPED_TRACE(fmt::format("{} in {}", with.name, c10::toString(type)));
  const Setting setting = setting_of(with, device);
  const at::Tensor x = random_tensor({setting.T, kHidden}, type, device, 1).requires_grad_(true),
                   grad = random_tensor({setting.T, kHidden}, type, device, 2);
  GatedBlock block = random_block(with, type, device);
  EXPECT_TRUE(gated_block_serves(x, block.head_size, setting.how));
  const auto node = outcome_of(gated_block(x, block, setting.rotary, setting.how), grad, x, block);
  check_other_ways(x, grad, block, setting, node);
  const auto operators = outcome_of(by_operators(x, block, setting), grad, x, block);
  if (type == at::kFloat) {
    const double most = device.is_cuda() ? 1e-5 : 3e-6;  // cuBLAS picks another order for a product that is added
    for (std::size_t i = 0; i < node.size(); ++i) EXPECT_LE(difference(node[i], operators[i]), most) << "at " << i;
    return 1;
  }
  const Setting exact_setting = setting_of(with, at::kCPU);
  GatedBlock exact_block = block;
  const auto exact_leaf = [](const at::Tensor& tensor) {
    return tensor.detach().to(at::kCPU, at::kFloat).requires_grad_(true);
  };
  for_each_parameter(exact_block, [&](at::Tensor& parameter) { parameter = exact_leaf(parameter); });
  const at::Tensor exact_x = exact_leaf(x);
  const auto exact = outcome_of(by_operators(exact_x, exact_block, exact_setting), grad.to(at::kCPU, at::kFloat),
                                exact_x, exact_block);
  // Both round at other places: for a single tensor this compares one draw of rounding errors with another, in a vector
  // one of few numbers. Over all of them the node is no less exact.
  double error = 0, error_of_operators = 0;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const double own = rms_error(node[i], exact[i]), theirs = rms_error(operators[i], exact[i]);
    EXPECT_LE(own, (node[i].dim() > 1 ? 1.5 : 2) * theirs + 1e-4) << "at " << i;
    error += own;
    error_of_operators += theirs;
  }
  return error / error_of_operators;
}

}  // namespace

void check_gated_blocks(at::ScalarType type, at::Device device) {
  double sum = 0;
  for (const GatedBlockCase& one : gated_block_cases()) sum += error_of_gated_block(one, type, device);
  EXPECT_LE(sum / static_cast<double>(gated_block_cases().size()), 1.05) << c10::toString(type);
}

}  // namespace tessera::kernels
