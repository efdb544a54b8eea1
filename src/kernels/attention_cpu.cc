// Each sequence and head is computed separately: blocks of queries against all the keys they see, so that a block's
// scores (at most kQueryBlock x the longest sequence) stay in the cache and nothing of size L x L is kept. Matrix
// products are libtorch's, in float32 for every type.
//
// Letters: T tokens of all sequences, L tokens of one, H heads, head size D.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
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
  const float* slopes;  // null: none
  float dropout;
  std::uint64_t seed;

  Setting(std::int64_t D, const PackedAttention& how, std::uint64_t dropout_seed)
      : scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(D)))),
        slopes(how.alibi_slopes ? how.alibi_slopes->const_data_ptr<float>() : nullptr),
        dropout(drops(how) ? static_cast<float>(how.dropout) : 0.0f),
        seed(dropout_seed) {}

  ScoreBlock block(std::int64_t first, std::int64_t n, std::int64_t head) const {
    return {n, first + n, first, scale, slopes == nullptr ? 0.0f : slopes[head]};
  }
  ScoreDropout dropout_of(std::int64_t row) const { return {dropout, seed + static_cast<std::uint64_t>(row)}; }
};

// A buffer for one block of scores, reused for each block.
struct Scratch {
  at::Tensor numbers;

  explicit Scratch(std::int64_t longest) : numbers(at::empty({std::min(kQueryBlock, longest) * longest}, at::kFloat)) {}
  at::Tensor block(std::int64_t n, std::int64_t m) const { return numbers.narrow(0, 0, n * m).view({n, m}); }
};

// Runs body(sequence, head, scratch...) for all, in parallel. Heads are outermost: each thread gets its share of every
// sequence.
template <typename Body>
void for_each_head(const Sequences& sequences, std::int64_t num_heads, const Body& body) {
  parallel_for(0, num_heads * sequences.count, 1, [&](std::int64_t first, std::int64_t last) {
    const at::AutoDispatchBelowADInplaceOrView no_autograd;  // autograd modes are per thread
    const Scratch one(sequences.longest), two(sequences.longest);
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

struct Forward {
  at::Tensor out;        // [T, H, D]
  at::Tensor logsumexp;  // [H, T] float32
};

Forward forward_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedAttention& how,
                   std::uint64_t seed) {
  const std::int64_t T = q.size(0), H = q.size(1), D = q.size(2);
  Forward result{at::empty({T, H, D}, q.options()), at::empty({H, T}, q.options().dtype(at::kFloat))};
  const Sequences sequences(how.cu_seqlens);
  const Setting setting(D, how, seed);
  float* logsumexp = result.logsumexp.mutable_data_ptr<float>();
  for_each_head(sequences, H, [&](std::int64_t b, std::int64_t head, const Scratch& scratch, const Scratch&) {
    const std::int64_t begin = sequences.begin(b), L = sequences.length(b);
    const auto qh = head_of(q, begin, L, head), kh = head_of(k, begin, L, head), vh = head_of(v, begin, L, head);
    const auto own = result.out.narrow(0, begin, L).select(1, head);
    const bool direct = own.scalar_type() == at::kFloat;
    const auto out = direct ? own : at::empty({L, D}, qh.options());
    for (std::int64_t first = 0; first < L; first += kQueryBlock) {
      const std::int64_t n = std::min(kQueryBlock, L - first), m = first + n, row = head * T + begin + first;
      auto scores = scratch.block(n, m);
      multiply_rows(scores, qh.narrow(0, first, n), kh.narrow(0, 0, m));
      softmax_rows(setting.block(first, n, head), setting.dropout_of(row), scores.mutable_data_ptr<float>(),
                   logsumexp + row);
      auto part = out.narrow(0, first, n);
      at::mm_out(part, scores, vh.narrow(0, 0, m));
    }
    if (!direct) own.copy_(out);
  });
  return result;
}

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

struct AttentionGradients {
  at::Tensor q, k, v;
};

AttentionGradients backward_of(const at::Tensor& grad, const variable_list& saved, const PackedAttention& how,
                               std::uint64_t seed) {
  const auto &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3];
  const std::int64_t T = q.size(0), H = q.size(1), D = q.size(2);
  // Float32 gradients are accumulated in place; half types use a buffer per head.
  AttentionGradients result{at::zeros({T, H, D}, q.options()), at::zeros({T, H, D}, q.options()),
                            at::zeros({T, H, D}, q.options())};
  const bool direct = q.scalar_type() == at::kFloat;
  const Sequences sequences(how.cu_seqlens);
  const Setting setting(D, how, seed);
  const float* logsumexp = saved[4].const_data_ptr<float>();
  for_each_head(sequences, H, [&](std::int64_t b, std::int64_t head, const Scratch& one, const Scratch& two) {
    const std::int64_t begin = sequences.begin(b), L = sequences.length(b);
    const auto part = [&](const at::Tensor& x) { return head_of(x, begin, L, head); };
    const auto qh = part(q), kh = part(k), vh = part(v), gh = part(grad);
    const auto room = [&](const at::Tensor& x) { return direct ? part(x) : at::zeros({L, D}, qh.options()); };
    auto grad_q = room(result.q), grad_k = room(result.k), grad_v = room(result.v);
    const auto delta = deltas(gh, part(out));
    for (std::int64_t first = 0; first < L; first += kQueryBlock) {
      const std::int64_t n = std::min(kQueryBlock, L - first), m = first + n, row = head * T + begin + first;
      const auto queries = qh.narrow(0, first, n), grads = gh.narrow(0, first, n);
      auto scores = one.block(n, m), grad_scores = two.block(n, m);
      multiply_rows(scores, queries, kh.narrow(0, 0, m));
      multiply_rows(grad_scores, grads, vh.narrow(0, 0, m));
      softmax_rows_backward(setting.block(first, n, head), setting.dropout_of(row), logsumexp + row,
                            delta.data() + first, scores.mutable_data_ptr<float>(),
                            grad_scores.mutable_data_ptr<float>());
      auto own = grad_q.narrow(0, first, n);
      at::mm_out(own, grad_scores, kh.narrow(0, 0, m));
      grad_k.narrow(0, 0, m).addmm_(grad_scores.t(), queries);
      grad_v.narrow(0, 0, m).addmm_(scores.t(), grads);
    }
    if (direct) return;
    for (const auto& [whole, own] : {std::pair{result.q, grad_q}, {result.k, grad_k}, {result.v, grad_v}}) {
      whole.narrow(0, begin, L).select(1, head).copy_(own);
    }
  });
  return result;
}

class CpuAttention : public torch::autograd::Function<CpuAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PackedAttention& how, std::uint64_t seed) {
    const auto result = forward_of(q, k, v, how, seed);
    context->save_for_backward({q, k, v, result.out, result.logsumexp});
    keep(*context, how);
    context->saved_data["seed"] = static_cast<std::int64_t>(seed);
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto seed = static_cast<std::uint64_t>(context->saved_data["seed"].toInt());
    const auto result = backward_of(grads[0].contiguous(), saved, kept_in(*context), seed);
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
