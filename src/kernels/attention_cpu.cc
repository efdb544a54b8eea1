// Each sequence and query head is computed separately: blocks of queries against all the keys they see, so that a
// block's scores (at most kQueryBlock x the longest sequence) stay in the cache and nothing of size L x L is kept. Keys
// that a window hides from a whole block are not multiplied. Matrix products are libtorch's, in float32 for every type.
//
// Letters: T tokens of all sequences, L tokens of one, H heads of queries, Hkv of keys and values, head size D.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "kernels/attention_paths.h"
#include "kernels/cpu_rows.h"
#include "kernels/parallel.h"
#include "kernels/sizes.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Sequences {
  const std::int32_t* offsets;
  std::int64_t count;
  std::int64_t longest = 0;

  explicit Sequences(const at::Tensor& cu_seqlens)
      : offsets(cu_seqlens.const_data_ptr<std::int32_t>()), count(cu_seqlens.numel() - 1) {
    for (std::int64_t b = 0; b < count; ++b) longest = std::max(longest, length(b));
  }
  std::int64_t begin(std::int64_t b) const { return offsets[b]; }
  std::int64_t length(std::int64_t b) const { return offsets[b + 1] - offsets[b]; }
};

// Head h of a sequence: [L, D], float32; a view where the tensor is float32 already.
at::Tensor head_of(const at::Tensor& x, std::int64_t begin, std::int64_t length, std::int64_t head) {
  return x.narrow(0, begin, length).select(1, head).to(at::kFloat);
}

struct Setting {
  float scale;
  std::int64_t window;  // 0: none
  const float* slopes;  // null: none
  float dropout;
  std::uint64_t seed;

  Setting(std::int64_t D, const PackedAttention& how, std::uint64_t dropout_seed)
      : scale(static_cast<float>(scale_of(how, D))),
        window(how.window),
        slopes(how.alibi_slopes ? how.alibi_slopes->const_data_ptr<float>() : nullptr),
        dropout(drops(how) ? static_cast<float>(how.dropout) : 0.0f),
        seed(dropout_seed) {}

  ScoreBlock block(std::int64_t first, std::int64_t n, std::int64_t head) const {
    const std::int64_t first_key = window > 0 ? std::max<std::int64_t>(0, first - window + 1) : 0;
    return {n, first + n - first_key, first, scale, slopes == nullptr ? 0.0f : slopes[head], window, first_key};
  }
  ScoreDropout dropout_of(std::int64_t row) const { return {dropout, seed + static_cast<std::uint64_t>(row)}; }
};

// A buffer for one block of scores, reused for each block.
struct Scratch {
  at::Tensor numbers;

  explicit Scratch(std::int64_t numel) : numbers(at::empty({numel}, at::kFloat)) {}
  at::Tensor block(std::int64_t n, std::int64_t m) const { return numbers.narrow(0, 0, n * m).view({n, m}); }
};

// Runs body(sequence, head, scratch...) for all, in parallel. Heads are outermost: each thread gets its share of every
// sequence.
template <typename Body>
void for_each_head(const Sequences& sequences, std::int64_t num_heads, std::int64_t window, const Body& body) {
  const std::int64_t numel = attention_block_numel(sequences.longest, window);
  parallel_for(0, num_heads * sequences.count, 1, [&](std::int64_t first, std::int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;  // autograd modes are per thread
    const Scratch one(numel), two(numel);
    for (std::int64_t task = first; task < last; ++task) {
      const std::int64_t b = task % sequences.count, head = task / sequences.count;
      if (sequences.length(b) > 0) body(b, head, one, two);
    }
  });
}

// out[n, m] = a[n, D] b[m, D]^T, computed as its transpose: on ARM libtorch hands a row-major result with a transposed
// factor to oneDNN, whose setup costs 50 us per call; the transposed form goes to BLAS.
void multiply_rows(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  auto transposed = out.t();
  at::mm_out(transposed, b, a.t());
}

}  // namespace

// logsumexp: [H, T] float32.
AttentionPass cpu_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how,
                          std::uint64_t seed) {
  const std::int64_t T = q.size(0), H = q.size(1), D = q.size(2), group = H / k.size(1);
  AttentionPass result;
  result.out = at::empty({T, H, D}, q.options());
  result.logsumexp = at::empty({H, T}, q.options().dtype(at::kFloat));
  const Sequences sequences(how.cu_seqlens);
  const Setting setting(D, how, seed);
  float* logsumexp = result.logsumexp.mutable_data_ptr<float>();
  for_each_head(sequences, H, how.window,
                [&](std::int64_t b, std::int64_t head, const Scratch& scratch, const Scratch&) {
                  const std::int64_t begin = sequences.begin(b), L = sequences.length(b);
                  const auto qh = head_of(q, begin, L, head);
                  const auto kh = head_of(k, begin, L, head / group), vh = head_of(v, begin, L, head / group);
                  const auto own = result.out.narrow(0, begin, L).select(1, head);
                  const bool direct = own.scalar_type() == at::kFloat;
                  const auto out = direct ? own : at::empty({L, D}, qh.options());
                  for (std::int64_t first = 0; first < L; first += kQueryBlock) {
                    const std::int64_t n = std::min(kQueryBlock, L - first), row = head * T + begin + first;
                    const ScoreBlock block = setting.block(first, n, head);
                    auto scores = scratch.block(n, block.m);
                    multiply_rows(scores, qh.narrow(0, first, n), kh.narrow(0, block.first_key, block.m));
                    softmax_rows(block, setting.dropout_of(row), scores.mutable_data_ptr<float>(), logsumexp + row);
                    auto part = out.narrow(0, first, n);
                    at::mm_out(part, scores, vh.narrow(0, block.first_key, block.m));
                  }
                  if (!direct) own.copy_(out);
                });
  return result;
}

namespace {

// delta[i] = the sum of grad_out * out for query i: softmax's backward subtracts it from every key's gradient.
TESSERA_VECTORISED
void row_products(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride, std::int64_t n,
                  std::int64_t D, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float *x = a + i * a_stride, *y = b + i * b_stride;
    out[i] = lane_sum(D, [x, y](std::int64_t d) { return x[d] * y[d]; });
  }
}

std::vector<float> deltas(const at::Tensor& grad, const at::Tensor& out) {
  std::vector<float> delta(static_cast<std::size_t>(grad.size(0)));
  row_products(grad.const_data_ptr<float>(), grad.stride(0), out.const_data_ptr<float>(), out.stride(0), grad.size(0),
               grad.size(1), delta.data());
  return delta;
}

// The gradient of each key/value head: the sum over the query heads of its group, in their order. x: [T, H, D].
at::Tensor sum_heads_of_groups(const at::Tensor& x, std::int64_t Hkv, at::ScalarType type) {
  const auto groups = x.unflatten(1, {Hkv, x.size(1) / Hkv});
  auto sum = groups.select(2, 0).contiguous();
  for (std::int64_t head = 1; head < groups.size(2); ++head) sum.add_(groups.select(2, head));
  return sum.to(type);
}

}  // namespace

AttentionGradients cpu_backward(const at::Tensor& grad, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const PackedAttention& how, const AttentionPass& pass, std::uint64_t seed) {
  const at::Tensor& out = pass.out;
  const std::int64_t T = q.size(0), H = q.size(1), D = q.size(2), Hkv = k.size(1), group = H / Hkv;
  // Float32 gradients are accumulated in place; half types use a buffer per head. Grouped heads give each query head
  // its own gradients of k and v, so that heads still run in parallel and are added up in one order.
  const bool direct = q.scalar_type() == at::kFloat, grouped = group > 1;
  const auto of_keys = grouped ? q.options().dtype(at::kFloat) : q.options();
  AttentionGradients result{at::zeros({T, H, D}, q.options()), at::zeros({T, H, D}, of_keys),
                            at::zeros({T, H, D}, of_keys)};
  const Sequences sequences(how.cu_seqlens);
  const Setting setting(D, how, seed);
  const float* logsumexp = pass.logsumexp.const_data_ptr<float>();
  for_each_head(
      sequences, H, how.window, [&](std::int64_t b, std::int64_t head, const Scratch& one, const Scratch& two) {
        const std::int64_t begin = sequences.begin(b), L = sequences.length(b);
        const auto part = [&](const at::Tensor& x) {
          return head_of(x, begin, L, x.size(1) == H ? head : head / group);
        };
        const auto qh = part(q), kh = part(k), vh = part(v), gh = part(grad);
        const auto room = [&](const at::Tensor& x) {
          return x.scalar_type() == at::kFloat ? part(x) : at::zeros({L, D}, qh.options());
        };
        auto grad_q = room(result.q), grad_k = room(result.k), grad_v = room(result.v);
        const auto delta = deltas(gh, part(out));
        for (std::int64_t first = 0; first < L; first += kQueryBlock) {
          const std::int64_t n = std::min(kQueryBlock, L - first), row = head * T + begin + first;
          const ScoreBlock block = setting.block(first, n, head);
          const auto seen = [&](const at::Tensor& x) { return x.narrow(0, block.first_key, block.m); };
          const auto queries = qh.narrow(0, first, n), grads = gh.narrow(0, first, n);
          auto scores = one.block(n, block.m), grad_scores = two.block(n, block.m);
          multiply_rows(scores, queries, seen(kh));
          multiply_rows(grad_scores, grads, seen(vh));
          softmax_rows_backward(block, setting.dropout_of(row), logsumexp + row, delta.data() + first,
                                scores.mutable_data_ptr<float>(), grad_scores.mutable_data_ptr<float>());
          auto own = grad_q.narrow(0, first, n);
          at::mm_out(own, grad_scores, seen(kh));
          seen(grad_k).addmm_(grad_scores.t(), queries);
          seen(grad_v).addmm_(scores.t(), grads);
        }
        if (direct) return;
        for (const auto& [whole, own] : {std::pair{result.q, grad_q}, {result.k, grad_k}, {result.v, grad_v}}) {
          if (whole.scalar_type() != at::kFloat) whole.narrow(0, begin, L).select(1, head).copy_(own);
        }
      });
  if (grouped) {
    result.k = sum_heads_of_groups(result.k, Hkv, k.scalar_type());
    result.v = sum_heads_of_groups(result.v, Hkv, v.scalar_type());
  }
  return result;
}

namespace {

class CpuAttention : public torch::autograd::Function<CpuAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedAttention& how, std::uint64_t seed) {
    const auto result = cpu_forward(q, k, v, how, seed);
    context->save_for_backward({q, k, v, result.out, result.logsumexp});
    keep(*context, how);
    context->saved_data["seed"] = static_cast<std::int64_t>(seed);
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto seed = static_cast<std::uint64_t>(context->saved_data["seed"].toInt());
    const AttentionPass pass{saved[3], saved[4], {}, {}};
    const auto result =
        cpu_backward(grads[0].contiguous(), saved[0], saved[1], saved[2], kept_in(*context), pass, seed);
    return {result.q, result.k, result.v, {}, {}};
  }
};

// Drawn from the CPU generator, so that a seed or a restored generator state reproduces it.
std::uint64_t draw_seed() {
  auto generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get<at::CPUGeneratorImpl>()->random64();
}

}  // namespace

at::Tensor attention_on_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how) {
  PackedAttention own = how;
  if (own.alibi_slopes) own.alibi_slopes = own.alibi_slopes->contiguous();
  return CpuAttention::apply(with_dense_heads(q), with_dense_heads(k), with_dense_heads(v), own,
                             drops(how) ? draw_seed() : 0);
}

}  // namespace tessera::kernels
