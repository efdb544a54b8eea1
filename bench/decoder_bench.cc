// A block of Llama and the kernels it is made of, forward and backward, beside libtorch's own operators: at::rms_norm,
// the rotation by cos, sin and cat, silu * up, and scaled_dot_product_attention of one row after another. On a CPU in
// float32 and bf16, on a GPU in bf16 if there is one. All ways alternate in one run; the best turn counts on a CPU, the
// median on a GPU.
//
//   decoder_bench [TURNS]
//
// Prints times and ratios, and marks: on a CPU nothing of ours is slower (bench/decoder_bench.sh).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "comm/gpu_support.h"
#include "kernels/gated_block.h"
#include "kernels/gated_linear.h"
#include "kernels/rms_norm.h"

namespace tessera::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// Llama 3.2 1B on a GPU; on a CPU its shape with a quarter of the widths.
struct Sizes {
  std::int64_t C, F, H, Hkv, D;
  std::vector<std::int64_t> rows;

  std::int64_t T() const {
    std::int64_t sum = 0;
    for (const auto length : rows) sum += length;
    return sum;
  }
};

struct Way {
  std::string name;
  std::function<at::Tensor()> forward;
  std::vector<double> seconds{};
};

class Bench {
 public:
  Bench(const Sizes& sizes, at::ScalarType type, at::Device device, int turns)
      : sizes_(sizes), type_(type), device_(device), turns_(turns) {
    std::vector<std::int32_t> offsets = {0};
    for (const auto length : sizes.rows) offsets.push_back(offsets.back() + static_cast<std::int32_t>(length));
    how_ = {at::tensor(offsets, at::kInt).to(device), *std::ranges::max_element(sizes.rows), {}};
    const at::Tensor frequencies = at::pow(10000.0, at::arange(sizes.D / 2, at::kFloat) * (-2.0 / sizes.D));
    const at::Tensor angles = at::arange(sizes.T(), at::kFloat).unsqueeze(1) * frequencies;
    table_ = {angles.cos().to(device), angles.sin().to(device)};
    cos_ = at::cat({table_.cos, table_.cos}, 1).unsqueeze(1).to(type);
    sin_ = at::cat({table_.sin, table_.sin}, 1).unsqueeze(1).to(type);
  }

  void run() {
    rms_norms();
    rotations();
    gates();
    attentions();
    blocks();
  }
  bool is_slower() const { return is_slower_; }

 private:
  at::Tensor leaf(at::IntArrayRef sizes, double deviation = 1) const {
    return (at::randn(sizes, at::kFloat) * deviation).to(type_).to(device_).requires_grad_(true);
  }
  at::Tensor weight(std::int64_t out, std::int64_t in) const {
    return leaf({out, in}, 1 / std::sqrt(static_cast<double>(in)));
  }

  // The first way is ours, the last libtorch's.
  void compare(const std::string& what, std::vector<Way> ways, const std::vector<at::Tensor>& leaves) {
    const auto synchronize = [&] {
      if (device_.is_cuda()) gpu_support()->synchronize();
    };
    at::Tensor grad;
    for (int turn = -2; turn < turns_; ++turn) {
      for (Way& way : ways) {
        for (const at::Tensor& tensor : leaves) tensor.mutable_grad().reset();
        synchronize();
        const auto begin = Clock::now();
        const at::Tensor out = way.forward();
        if (!grad.defined()) grad = at::randn(out.sizes(), out.options());
        out.backward(grad);
        synchronize();
        if (turn >= 0) way.seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      }
    }
    const auto time_of = [&](Way& way) {
      std::ranges::sort(way.seconds);
      return 1e3 * (device_.is_cuda() ? way.seconds[way.seconds.size() / 2] : way.seconds.front());
    };
    const double theirs = time_of(ways.back());
    for (Way& way : ways) {
      fmt::print("{:<26} {:<22} {:9.3f} ms   {:5.2f} times as fast as libtorch's\n", what, way.name, time_of(way),
                 theirs / time_of(way));
    }
    const double ratio = theirs / time_of(ways.front());
    if (device_.is_cuda()) return;
    const bool met = ratio >= 1;
    is_slower_ |= !met;
    fmt::print("mark: {}, {}, times as fast as libtorch's: {:.3g} (at least 1): {}\n", what, c10::toString(type_),
               ratio, met ? "met" : "missed");
  }

  at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {x.size(-1)}, weight, kEpsilon);
  }
  at::Tensor plain_rotary(const at::Tensor& x) const {
    const auto halves = x.chunk(2, 2);
    return x * cos_ + at::cat({-halves[1], halves[0]}, 2) * sin_;
  }
  at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
    std::vector<at::Tensor> outs;
    std::int64_t begin = 0;
    for (const std::int64_t length : sizes_.rows) {
      const auto row = [&](const at::Tensor& x) { return x.narrow(0, begin, length).transpose(0, 1).unsqueeze(0); };
      outs.push_back(at::scaled_dot_product_attention(row(q), row(k), row(v), {}, 0.0, /*is_causal=*/true, {},
                                                      /*enable_gqa=*/sizes_.H != sizes_.Hkv)
                         .squeeze(0)
                         .transpose(0, 1));
      begin += length;
    }
    return at::cat(outs, 0);
  }

  void rms_norms() {
    const at::Tensor x = leaf({sizes_.T(), sizes_.C}), w = leaf({sizes_.C});
    compare("rms norm",
            {{"ours", [=] { return rms_norm(x, w, kEpsilon, RmsWeight::kAfterRounding); }},
             {"libtorch", [=, this] { return plain_norm(x, w); }}},
            {x, w});
  }

  void rotations() {
    const at::Tensor x = leaf({sizes_.T(), sizes_.H, sizes_.D});
    compare("rotary",
            {{"ours", [=, this] { return rotary(x, table_); }}, {"libtorch", [=, this] { return plain_rotary(x); }}},
            {x});
  }

  // The product behind it is narrow, so that the gate counts.
  void gates() {
    const at::Tensor gate = leaf({sizes_.T(), sizes_.F}), up = leaf({sizes_.T(), sizes_.F}), w = weight(16, sizes_.F);
    compare("silu(gate) * up, narrow",
            {{"ours", [=] { return gated_linear(gate, up, w, {}, GateActivation::kSilu); }},
             {"libtorch", [=] { return at::linear(at::silu(gate) * up, w); }}},
            {gate, up, w});
  }

  void attentions() {
    const at::Tensor q = leaf({sizes_.T(), sizes_.H, sizes_.D}), k = leaf({sizes_.T(), sizes_.Hkv, sizes_.D}),
                     v = leaf({sizes_.T(), sizes_.Hkv, sizes_.D});
    compare("attention, grouped heads",
            {{"ours", [=, this] { return packed_attention(q, k, v, how_); }},
             {"libtorch", [=, this] { return plain_attention(q, k, v); }}},
            {q, k, v});
  }

  void blocks() {
    const auto& [C, F, H, Hkv, D, rows] = sizes_;
    GatedBlock b;
    b.query.weight = weight(H * D, C), b.key.weight = weight(Hkv * D, C), b.value.weight = weight(Hkv * D, C);
    b.output.weight = weight(C, H * D);
    b.gate.weight = weight(F, C), b.up.weight = weight(F, C), b.down.weight = weight(C, F);
    b.norm_before_attention = leaf({C}), b.norm_before_mlp = leaf({C});
    b.num_heads = H, b.num_key_value_heads = Hkv, b.head_size = D, b.epsilon = kEpsilon;
    const at::Tensor x = leaf({sizes_.T(), C});
    compare(fmt::format("block of {}", C),
            {{"one node", [=, this] { return gated_block(x, b, table_, how_); }},
             {"our kernels", [=, this] { return by_kernels(x, b); }},
             {"libtorch", [=, this] { return by_libtorch(x, b); }}},
            {x, b.query.weight, b.key.weight, b.value.weight, b.output.weight, b.gate.weight, b.up.weight,
             b.down.weight, b.norm_before_attention, b.norm_before_mlp});
  }

  at::Tensor heads(const at::Tensor& x, const GatedBlock::Projection& to, std::int64_t count) const {
    return at::linear(x, to.weight).view({x.size(0), count, sizes_.D});
  }

  at::Tensor by_kernels(const at::Tensor& x, const GatedBlock& b) const {
    const at::Tensor normed = rms_norm(x, b.norm_before_attention, kEpsilon, RmsWeight::kAfterRounding);
    const at::Tensor q = rotary(heads(normed, b.query, sizes_.H), table_),
                     k = rotary(heads(normed, b.key, sizes_.Hkv), table_), v = heads(normed, b.value, sizes_.Hkv);
    const at::Tensor context = packed_attention(q, k, v, how_).view({x.size(0), -1});
    const auto [sum, input] = residual_rms_norm(at::linear(context, b.output.weight), x, b.norm_before_mlp, kEpsilon,
                                                RmsWeight::kAfterRounding);
    const at::Tensor gate = at::linear(input, b.gate.weight), up = at::linear(input, b.up.weight);
    return gated_linear(gate, up, b.down.weight, {}, GateActivation::kSilu).add_(sum);
  }

  at::Tensor by_libtorch(const at::Tensor& x, const GatedBlock& b) const {
    const at::Tensor normed = plain_norm(x, b.norm_before_attention);
    const at::Tensor q = plain_rotary(heads(normed, b.query, sizes_.H)),
                     k = plain_rotary(heads(normed, b.key, sizes_.Hkv)), v = heads(normed, b.value, sizes_.Hkv);
    const at::Tensor context = plain_attention(q, k, v).reshape({x.size(0), -1});
    const at::Tensor sum = x + at::linear(context, b.output.weight), input = plain_norm(sum, b.norm_before_mlp);
    const at::Tensor gated = at::silu(at::linear(input, b.gate.weight)) * at::linear(input, b.up.weight);
    return sum + at::linear(gated, b.down.weight);
  }

  static constexpr double kEpsilon = 1e-5;

  Sizes sizes_;
  at::ScalarType type_;
  at::Device device_;
  int turns_;
  PackedAttention how_;
  RotaryTable table_;
  at::Tensor cos_, sin_;
  bool is_slower_ = false;
};

bool run(const Sizes& sizes, at::ScalarType type, at::Device device, int turns) {
  fmt::print("{} in {}, {} tokens in {} rows, forward and backward:\n", device.str(), c10::toString(type), sizes.T(),
             sizes.rows.size());
  Bench bench(sizes, type, device, turns);
  bench.run();
  return bench.is_slower();
}

}  // namespace
}  // namespace tessera::kernels

int main(int argc, char** argv) {
  using namespace tessera::kernels;
  const int turns = argc > 1 ? std::stoi(argv[1]) : 10;
  // libtorch's CUDA must be loaded before its generators are first asked for.
  const bool has_gpu = tessera::gpu_support() != nullptr;
  at::manual_seed(1);
  if (has_gpu) {
    run({2048, 8192, 32, 8, 64, {512, 512, 512, 512, 512, 512, 512, 512}}, at::kBFloat16, {at::kCUDA, 0}, turns);
    return 0;
  }
  const Sizes on_cpu{512, 2048, 8, 2, 64, {128, 31, 256, 97}};
  bool is_slower = false;
  for (const auto type : {at::kFloat, at::kBFloat16}) is_slower |= run(on_cpu, type, at::kCPU, turns);
  return is_slower ? 3 : 0;
}
