// The kernels on a GPU: the checks of src/kernels, in float32 and in the half types.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "comm/gpu_support.h"
#include "core/error.h"
#include "kernels/attention.h"
#include "kernels/attention_paths.h"
#include "kernels/bias_gelu.h"
#include "kernels/cuda_kernels.h"
#include "kernels/device_fill.h"
#include "kernels/flat_buffers.h"
#include "kernels/gradient_room.h"
#include "kernels/kernel_checks.h"
#include "kernels/layer_norm.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/optimizers/optimizer_slice.h"
#include "kernels/rms_norm.h"
#include "kernels/row_sums.h"

namespace tessera::kernels {
namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16, at::kHalf};

class KernelsOnGpu : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(gpu_support(), nullptr) << no_gpu_reason(); }
  const at::Device gpu_{at::kCUDA, 0};
};

TEST_F(KernelsOnGpu, PackedAttentionEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& one : attention_cases()) check_attention(one, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, PackedAttentionOfLongSequencesKeepsAlibiExact) {
  // Where the bias reaches a thousand, two parts in bfloat16 are not enough.
  const AttentionCase one{"long", {2048, 1500, 3}, 8, 64, true, true};
  for (const auto type : kTypes) check_attention(one, type, gpu_);
  for (const auto type : kTypes) check_attention(one, type, gpu_, attention_of_heads);
}

TEST_F(KernelsOnGpu, AttentionOfOneProjectionEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& one : attention_cases()) {
      check_attention(one, type, gpu_, attention_of_heads);
      check_attention(one, type, gpu_, attention_of_parts);
    }
  }
}

TEST_F(KernelsOnGpu, AttentionOfOneProjectionTakesEveryLengthAndHeadSize) {
  const std::vector<std::int64_t> lengths = {1, 63, 64, 65, 0, 128, 384, 385};
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const std::int64_t D : {64, 80, 96, 128}) {
      for (const bool alibi : {true, false}) {
        check_attention({fmt::format("heads of {}", D), lengths, 3, D, alibi, false}, type, gpu_, attention_of_heads);
      }
    }
    for (const std::int64_t H : {1, 64}) {
      check_attention({fmt::format("{} heads", H), lengths, H, 64, true, false}, type, gpu_, attention_of_parts);
    }
    for (const std::int64_t D : {64, 80, 96, 128}) {
      check_attention({fmt::format("long rows, heads of {}", D), {2048, 3}, 1, D, true, false}, type, gpu_,
                      attention_of_heads);
    }
  }
}

// Few enough for compute-sanitizer (tools/sanitize_kernels.sh).
TEST_F(KernelsOnGpu, AttentionOfOneProjectionEqualsThePlainOneOverAFewTiles) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const std::int64_t D : {64, 80, 96, 128}) {
      check_attention({fmt::format("heads of {}", D), {1, 130, 63}, 1, D, true, false}, type, gpu_, attention_of_heads);
    }
  }
}

TEST_F(KernelsOnGpu, AttentionOfOneProjectionRepeatsItsBits) {
  const PackedAttention how{at::tensor({0, 2048, 3072}, at::kInt).to(gpu_), 2048, at::linspace(0.01, 1, 16).to(gpu_)};
  const auto qkv = random_tensor({3072, 16, 3, 64}, at::kBFloat16, gpu_, 1).requires_grad_();
  at::Tensor first;
  for (int i = 0; i < 10; ++i) {
    qkv.mutable_grad().reset();
    packed_attention(qkv, 2, how).sum().backward();
    if (i == 0) first = qkv.grad();
    EXPECT_TRUE(at::equal(qkv.grad(), first)) << "time " << i + 1;
  }
}

TEST_F(KernelsOnGpu, ABlockAsOneNodeIsAsExactAsItsOperations) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    check_transformer_block(2, 64, type, gpu_);
    check_transformer_block(3, 80, type, gpu_);
    check_transformer_block(8, 128, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, AGatedBlockAsOneNodeIsAsExactAsItsOperators) {
  for (const auto type : kTypes) check_gated_blocks(type, gpu_);
}

TEST_F(KernelsOnGpu, PackedAttentionRepeatsItsGradientsWhereThatIsWished) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const auto qkv = random_tensor({3072, 16, 3, 64}, at::kBFloat16, gpu_, 1).requires_grad_();
  const PackedAttention how{at::tensor({0, 2048, 3072}, at::kInt).to(gpu_), 2048, at::linspace(0.01, 1, 16).to(gpu_)};
  at::Tensor first;
  for (int i = 0; i < 10; ++i) {
    qkv.mutable_grad().reset();
    packed_attention(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), how).sum().backward();
    if (i == 0) first = qkv.grad();
    EXPECT_TRUE(at::equal(qkv.grad(), first)) << "time " << i + 1;
  }
  EXPECT_TRUE(at::globalContext().deterministicAlgorithmsWarnOnly());
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST_F(KernelsOnGpu, WidenedHeadsAreThePlainOnes) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto qkv = random_tensor({40, 5, 3, 64}, type, gpu_, 1);
    const auto q = qkv.select(2, 0), k = qkv.select(2, 1), v = qkv.select(2, 2);
    const PackedAttention how{at::tensor({0, 0, 7, 8, 40}, at::kInt).to(gpu_), 32,
                              at::tensor({1.0f, 0.3f, 0.1f, 0.03f, 0.004f}).to(gpu_)};
    const auto [plain_q, plain_k] = with_alibi_dimensions(q, k, how);
    const auto wide = cuda_kernels().widen_heads({q, k, v}, 72, how.cu_seqlens, *how.alibi_slopes, 8, 1);
    EXPECT_TRUE(at::equal(wide[0], plain_q));
    EXPECT_TRUE(at::equal(wide[1], plain_k));
    EXPECT_TRUE(at::equal(wide[2].narrow(2, 0, 64), v));
    EXPECT_TRUE(at::equal(wide[2].narrow(2, 64, 8), at::zeros({40, 5, 8}, v.options())));
  }
}

TEST_F(KernelsOnGpu, AttentionOfTodaysDecodersEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& one : decoder_attention_cases()) check_attention(one, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, PassesOfAttentionEqualThePlainOneForEveryLengthAndHeadSize) {
  const std::vector<std::int64_t> lengths = {1, 63, 64, 65, 0, 128, 384, 385};
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const std::int64_t D : {64, 80, 96, 128}) {
      for (const std::int64_t Hkv : {6, 2, 1}) {
        for (const std::int64_t window : {0, 1, 2, 64, 65, 130, 1000}) {
          check_attention({fmt::format("heads of {}, {} of keys, window {}", D, Hkv, window), lengths, 6, D, false,
                           false, Hkv, window, 0.11},
                          type, gpu_, attention_by_passes);
        }
      }
    }
  }
}

// Few enough for compute-sanitizer (tools/sanitize_kernels.sh).
TEST_F(KernelsOnGpu, PassesOfAttentionEqualThePlainOneOverAFewTiles) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    for (const std::int64_t D : {64, 80, 96, 128}) {
      check_attention({fmt::format("heads of {}", D), {1, 200, 63}, 2, D, false, false, 1, 70}, type, gpu_,
                      attention_by_passes);
    }
  }
}

TEST_F(KernelsOnGpu, PassesOfAttentionRepeatTheirBits) {
  const auto q = random_tensor({3072, 16, 64}, at::kBFloat16, gpu_, 1).requires_grad_();
  const auto k = random_tensor({3072, 4, 64}, at::kBFloat16, gpu_, 2).requires_grad_();
  const PackedAttention how{at::tensor({0, 2048, 3072}, at::kInt).to(gpu_), 2048, {}};
  std::vector<at::Tensor> first;
  for (int i = 0; i < 10; ++i) {
    for (const at::Tensor& leaf : {q, k}) leaf.mutable_grad().reset();
    attention_by_passes(q, k, k, how).square().sum().backward();
    if (i == 0) first = {q.grad(), k.grad()};
    EXPECT_TRUE(at::equal(q.grad(), first[0]) && at::equal(k.grad(), first[1])) << "time " << i + 1;
  }
}

TEST_F(KernelsOnGpu, AttentionOfTodaysDecodersRepeatsItsBits) {
  const auto q = random_tensor({3072, 16, 64}, at::kBFloat16, gpu_, 1).requires_grad_();
  const auto k = random_tensor({3072, 4, 64}, at::kBFloat16, gpu_, 2).requires_grad_();
  const auto of_heads = random_tensor({3072, 16, 64}, at::kBFloat16, gpu_, 3).requires_grad_();
  const auto wide = random_tensor({3072, 2, 256}, at::kBFloat16, gpu_, 4).requires_grad_();
  PackedAttention plain{at::tensor({0, 2048, 3072}, at::kInt).to(gpu_), 2048, {}}, windowed = plain, scaled = plain;
  windowed.window = 700;
  scaled.scale = 0.1;
  const auto repeats = [](const at::Tensor& query, const at::Tensor& keys, const PackedAttention& how) {
    at::Tensor first;
    for (int i = 0; i < 10; ++i) {
      query.mutable_grad().reset();
      packed_attention(query, keys, keys, how).sum().backward();
      if (i == 0) first = query.grad();
      EXPECT_TRUE(at::equal(query.grad(), first)) << "time " << i + 1;
    }
  };
  repeats(q, k, plain);
  repeats(q, of_heads, windowed);
  repeats(q, of_heads, scaled);
  repeats(wide, wide.detach(), plain);
  EXPECT_FALSE(at::globalContext().deterministicAlgorithms());
  EXPECT_TRUE(at::globalContext().deterministicFillUninitializedMemory());
}

TEST_F(KernelsOnGpu, RmsNormEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const RmsWeight how : {RmsWeight::kAfterRounding, RmsWeight::kBeforeRounding, RmsWeight::kOnePlus}) {
      for (const auto& rows : rows_cases()) check_rms_norm(rows, how, type, gpu_);
      check_rms_norm({{5, 12'288}}, how, type, gpu_);
      check_rms_norm({{70'000, 16}}, how, type, gpu_);  // more rows than 1,024 partial sums of 64
      check_rms_norm_of_heads(how, type, gpu_);
    }
  }
}

TEST_F(KernelsOnGpu, RotaryEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& one : rotary_cases()) check_rotary(one, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, GatedLinearEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& one : gated_cases()) {
      check_gated_linear(one, GateActivation::kSilu, type, gpu_);
      check_gated_linear(one, GateActivation::kGelu, type, gpu_);
    }
  }
}

TEST_F(KernelsOnGpu, AttentionDropoutIsTheSameInForwardAndBackward) {
  for (const auto type : kTypes) check_attention_dropout(type, gpu_);
}

TEST_F(KernelsOnGpu, LayerNormEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& rows : rows_cases()) check_layer_norm(rows, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, BiasGeluEqualsThePlainOne) {
  for (const auto type : kTypes) {
    for (const auto& rows : rows_cases()) check_bias_gelu(rows, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, BiasGeluLinearEqualsItsParts) {
  for (const auto type : kTypes) {
    for (const auto& rows : rows_cases()) check_bias_gelu_linear(rows, type, gpu_);
  }
}

TEST_F(KernelsOnGpu, ColumnSumsEqualThePlainOnes) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t num_rows : {1, 63, 700}) {
      const at::Tensor x = random_tensor({num_rows, 192}, type, gpu_, 1);
      const at::Tensor exact = x.to(at::kDouble).sum(0), error = (column_sums(x).to(at::kDouble) - exact).abs();
      EXPECT_LE(error.max().item<double>(), (type == at::kFloat ? 1e-5 : 5e-3) * exact.abs().max().item<double>());
    }
  }
}

TEST_F(KernelsOnGpu, ParametersMayBeginAnywhereInAFlatBuffer) {
  const auto flat = random_tensor({3 * 64 + 1}, at::kBFloat16, gpu_, 1),
             x = random_tensor({7, 64}, at::kBFloat16, gpu_, 2);
  for (const std::int64_t offset : {0, 1, 64, 65}) {
    const auto weight = flat.narrow(0, offset, 64), bias = flat.narrow(0, offset + 64, 64);
    EXPECT_TRUE(at::equal(bias_gelu(x, bias), bias_gelu(x, bias.clone()))) << offset;
    EXPECT_TRUE(at::equal(layer_norm(x, weight, bias, 1e-5), layer_norm(x, weight.clone(), bias.clone(), 1e-5)))
        << offset;
    EXPECT_TRUE(at::equal(rms_norm(x, weight, 1e-5, RmsWeight::kOnePlus),
                          rms_norm(x, weight.clone(), 1e-5, RmsWeight::kOnePlus)))
        << offset;
  }
}

TEST_F(KernelsOnGpu, LinearCrossEntropyEqualsPlainLogitsAndCrossEntropy) {
  for (const auto type : kTypes) {
    for (const auto& head : head_cases()) check_linear_cross_entropy(head, type, gpu_);
  }
}

// Rows that one block holds, that a cluster of 2, 4 or 8 holds, that none holds, and rows that begin on no word.
TEST_F(KernelsOnGpu, CrossEntropyOfRowsOfAnyLength) {
  for (const auto type : kTypes) {
    for (const std::int64_t V : {8, 1000, 1001, 32'768, 50'264, 131'072, 250'880, 250'881, 900'000}) {
      for (const double smoothing : {0.0, 0.1}) {
        const at::Tensor logits = random_tensor({6, V}, type, gpu_, 1, 3.0);
        const at::Tensor targets = at::tensor({std::int64_t{0}, V - 1, V / 2, V / 3, V / 8, V * 7 / 8}).to(gpu_);
        const at::Tensor exact = logits.to(at::kDouble).requires_grad_(true);
        const at::Tensor loss = at::cross_entropy_loss(exact, targets, {}, at::Reduction::Sum, -100, smoothing);
        loss.backward();
        const at::Tensor sum = at::zeros({}, logits.options().dtype(at::kFloat)), plain = sum.clone();
        cross_entropy_rows(logits.clone(), targets, smoothing, 2.0, /*to_gradient=*/false, plain);
        cross_entropy_rows(logits, targets, smoothing, 2.0, /*to_gradient=*/true, sum);
        const double expected = loss.item<double>();
        EXPECT_NEAR(sum.item<double>(), expected, 2e-5 * expected) << V << " " << c10::toString(type);
        EXPECT_EQ(sum.item<float>(), plain.item<float>()) << V;
        const at::Tensor gradient = 2 * exact.grad();
        EXPECT_LE((logits.to(at::kDouble) - gradient).abs().max().item<double>(),
                  (type == at::kFloat ? 1e-5 : 8e-3) * gradient.abs().max().item<double>())
            << V << " " << c10::toString(type);
      }
    }
  }
}

TEST_F(KernelsOnGpu, LinearCrossEntropyRefusesTargetsThatAreNoClass) {
  const auto hidden = at::zeros({3, 8}, at::device(gpu_)), weight = at::zeros({5, 8}, at::device(gpu_));
  const auto targets = at::tensor({0, 5, -100}, at::kLong).to(gpu_);
  EXPECT_THROW(linear_cross_entropy(hidden, weight, {}, targets), Error);
}

// Offers room once, and leaves the gradient to autograd, which makes it .grad only if nobody else holds it.
class OneRoom : public GradientCollector {
 public:
  explicit OneRoom(at::Tensor room) : room_(std::move(room)) {}
  at::Tensor room(std::size_t) override { return std::exchange(room_, at::Tensor()); }
  void take(const std::vector<GivenGradient>&) override { FAIL(); }

 private:
  at::Tensor room_;
};

TEST_F(KernelsOnGpu, AWeightsGradientIsComputedInTheRoomThatIsOffered) {
  const at::Tensor hidden = at::randn({40, 64}, at::dtype(at::kBFloat16).device(gpu_)).requires_grad_();
  const at::Tensor targets = at::randint(0, 300, {40}, at::dtype(at::kLong).device(gpu_));
  const at::Tensor plain = at::randn({300, 64}, hidden.options()).requires_grad_();
  const at::Tensor weight = plain.detach().clone().requires_grad_();
  const at::Tensor flat = at::zeros({20000}, hidden.options());
  OneRoom room(flat.narrow(0, 128, weight.numel()).view_as(weight));
  collect_gradient(weight, room, 0);
  for (const at::Tensor& each : {plain, weight}) linear_cross_entropy(hidden, each, {}, targets).sum.backward();
  stop_collecting(weight);
  EXPECT_EQ(weight.grad().data_ptr(), flat.narrow(0, 128, 1).data_ptr());
  EXPECT_TRUE(at::equal(weight.grad(), plain.grad()));
  EXPECT_FALSE(gradient_room(weight).defined());
}

TEST_F(KernelsOnGpu, RowsAreAddedToATableAsCoalesceWould) {
  for (const auto type : kTypes) {
    for (const std::int64_t num_ids : {1, 7, 5000}) {  // all alike, many alike, few alike
      const at::Tensor ids = at::randint(0, num_ids, {1, 3001}, at::dtype(at::kLong).device(gpu_));
      const at::Tensor values = at::randn({3001, 100}, at::dtype(type).device(gpu_));
      const at::Tensor rows = at::sparse_coo_tensor(ids, values, {5000, 100});
      const at::Tensor table = at::randn({5000, 100}, values.options());
      const at::Tensor expected = table + rows.coalesce();
      add_rows(table, rows);
      EXPECT_TRUE(at::equal(table, expected)) << c10::toString(type) << " " << num_ids;
    }
  }
}

TEST_F(KernelsOnGpu, OptimizersEqualTorchOptim) {
  check_optimizers(TESSERA_TEST_DATA_FOLDER "/kernels/optimizers.json", gpu_);
}

TEST_F(KernelsOnGpu, PartsArePutLikeOneByOne) {
  check_put_parts(gpu_);
}

TEST_F(KernelsOnGpu, EveryOptimizerGivesWhatTheCpuGives) {
  const std::int64_t n = 100'003;
  const OptimizerNumbers numbers{.weight_decay = 0.1, .momentum = 0.9};
  for (const OptimizerKind* kind : optimizers()) {
    for (const auto type : kTypes) {
      const auto run = [&](at::Device device) {
        OptimizerSlice slice{random_tensor({n}, at::kFloat, device, 1), random_tensor({n}, type, device, 2)};
        for (std::size_t i = 0; i < kind->states(numbers).size(); ++i) {
          slice.states.push_back(random_tensor({n}, at::kFloat, device, 3 + i).square());
        }
        slice.copy = at::zeros({n}, at::device(device).dtype(at::kHalf));
        kind->update(slice, numbers, {.learning_rate = 0.01, .gradient_scale = 0.37, .step = 3});
        EXPECT_TRUE(at::equal(slice.copy, slice.params.to(at::kHalf)));
        return slice.params.cpu();
      };
      EXPECT_LE(difference(run(gpu_), run(at::kCPU)), 1e-7) << kind->name;
    }
  }
}

TEST_F(KernelsOnGpu, MastersInHalvesGetTheBitsOfWholeOnes) {
  check_masters_in_halves(gpu_);
  check_masters_in_halves(at::kCPU);  // this host's processor, which updates offloaded ones
}

// Of every length around a piece's, in the tensor's own type and in another.
TEST_F(KernelsOnGpu, ATensorIsFilledFromTheHostPieceByPiece) {
  for (const std::int64_t numel : {0, 1, 999, 1000, 1001, 300'007}) {
    const at::Tensor from = random_tensor({numel}, at::kBFloat16, at::kCPU, 1);
    for (const auto type : {at::kBFloat16, at::kFloat}) {
      const at::Tensor to = at::zeros({numel}, at::dtype(type).device(gpu_));
      fill_device(to, at::kBFloat16, 1000, [&](std::int64_t begin, const at::Tensor& piece) {
        piece.copy_(from.narrow(0, begin, piece.numel()));
      });
      EXPECT_TRUE(at::equal(to.cpu(), from.to(type))) << numel << " numbers";
    }
  }
}

TEST_F(KernelsOnGpu, LionIsItsPublishedFormula) {
  check_lion(gpu_);
}

TEST_F(KernelsOnGpu, ShardsGetTheBitsOfTheWhole) {
  const std::int64_t n = 5 * kNormBlock;
  const auto params = random_tensor({n}, at::kFloat, gpu_, 1), split = params.clone(),
             grads = random_tensor({n}, at::kBFloat16, gpu_, 2);
  const OptimizerKind& sgd = optimizer_of("sgd");
  sgd.update({params, grads}, {.weight_decay = 0.01}, {.learning_rate = 0.1});
  for (const auto& [begin, length] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, n - 1}}) {
    sgd.update({split.narrow(0, begin, length), grads.narrow(0, begin, length)}, {.weight_decay = 0.01},
               {.learning_rate = 0.1});
  }
  EXPECT_TRUE(at::equal(params, split));
  const auto sums = block_square_sums(params);
  EXPECT_TRUE(at::equal(sums.narrow(0, 2, 3), block_square_sums(params.narrow(0, 2 * kNormBlock, 3 * kNormBlock))));
  const double exact = params.to(at::kDouble).square().sum().item<double>();
  EXPECT_NEAR(sums.sum().item<double>(), exact, 1e-12 * exact);
}

// Units of 1 to 5000 blocks, in 1 to 4 parts with the padding that each number of parts brings.
TEST_F(KernelsOnGpu, TheSumOverUnitsDoesNotDependOnTheParts) {
  const std::vector<std::int64_t> blocks_of_unit = {1, 7, 1024, 1025, 5000};
  std::vector<at::Tensor> units;
  double exact = 0;
  for (std::size_t u = 0; u < blocks_of_unit.size(); ++u) {
    units.push_back(
        random_tensor({blocks_of_unit[u]}, at::kFloat, at::kCPU, static_cast<int>(u)).to(at::kDouble).square());
    exact += units.back().sum().item<double>();
  }
  const auto total_in_parts = [&](std::int64_t num_parts) {
    std::vector<std::int64_t> begins{0};
    std::vector<at::Tensor> columns;
    for (const at::Tensor& unit : units) {
      const std::int64_t of_part = (unit.numel() + num_parts - 1) / num_parts;
      const at::Tensor padded = at::zeros({num_parts * of_part}, at::kDouble);
      padded.narrow(0, 0, unit.numel()).copy_(unit);
      columns.push_back(padded.view({num_parts, of_part}));
      begins.push_back(begins.back() + of_part);
    }
    columns.push_back(at::arange(num_parts, at::kDouble).unsqueeze(1));  // carried along
    return add_units_cuda(at::cat(columns, 1).to(gpu_), at::tensor(begins, at::kLong).to(gpu_)).cpu();
  };
  const at::Tensor whole = total_in_parts(1);
  EXPECT_NEAR(whole[0].item<double>(), exact, 1e-12 * exact);
  for (const std::int64_t num_parts : {2, 3, 4}) {
    const at::Tensor total = total_in_parts(num_parts);
    EXPECT_EQ(total[0].item<double>(), whole[0].item<double>()) << num_parts << " parts";
    EXPECT_TRUE(at::equal(total.narrow(0, 1, num_parts), at::arange(num_parts, at::kDouble)));
  }
  units[3][5] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(total_in_parts(2)[0].item<double>()));
}

}  // namespace
}  // namespace tessera::kernels
