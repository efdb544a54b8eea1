#include "comm/ordered_reduce.h"

#include <ATen/OpMathType.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/error.h"

// On x86-64 one build serves every processor, which would leave half of most vector units idle. So the loops below are
// compiled once per vector width, and the loader picks one. They only add and compare: the bits are the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TESSERA_FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("default", "avx2", "avx512f"), flatten))
#else
#define TESSERA_FOR_EACH_VECTOR_WIDTH
#endif

namespace tessera {
namespace {

using c10d::ReduceOp;

// Elements per block: the accumulators (two of 8 KiB) stay in the L1 cache while all sources pass by.
constexpr std::int64_t kBlock = 2048;

template <ReduceOp::RedOpType op, typename A>
A combine(A a, A b) {
  if constexpr (op == ReduceOp::MAX) {
    return (a != a || a > b) ? a : b;  // NaN wins, as in torch
  } else if constexpr (op == ReduceOp::MIN) {
    return (a != a || a < b) ? a : b;
  } else if constexpr (std::is_integral_v<A>) {
    using Unsigned = std::make_unsigned_t<A>;  // wraps around, as torch's integers do
    return static_cast<A>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// The passes over one block, fused at both ends: with the accumulators in the L1 cache, they are the whole cost of a
// reduction of a few sources. `output` may be one of the sources, but never a shifted one, so that no iteration reads
// what another wrote.
template <typename T, ReduceOp::RedOpType op, typename A = at::opmath_type<T>>
struct Passes {
  static void copy(const T* a, std::int64_t n, A* sum) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] = static_cast<A>(a[i]);
  }
  static void first_two(const T* a, const T* b, std::int64_t n, A* sum) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] = combine<op, A>(static_cast<A>(a[i]), static_cast<A>(b[i]));
  }
  static void next(const T* a, std::int64_t n, A* sum) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] = combine<op, A>(sum[i], static_cast<A>(a[i]));
  }
  static void last(const A* sum, const T* a, std::int64_t n, T* output) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) output[i] = static_cast<T>(combine<op, A>(sum[i], static_cast<A>(a[i])));
  }
  static void only_two(const T* a, const T* b, std::int64_t n, T* output) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) {
      output[i] = static_cast<T>(combine<op, A>(static_cast<A>(a[i]), static_cast<A>(b[i])));
    }
  }
  // A node's sum is rounded to the type before it joins the others'.
  static void join_node(const A* node, std::int64_t n, A* total) {
    for (std::int64_t i = 0; i < n; ++i) total[i] = combine<op, A>(total[i], static_cast<A>(static_cast<T>(node[i])));
  }
  static void round(std::int64_t n, A* sum) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] = static_cast<A>(static_cast<T>(sum[i]));
  }
  static void write(const A* sum, std::int64_t n, int divisor, T* output) {
    for (std::int64_t i = 0; i < n; ++i)
      output[i] = static_cast<T>(divisor == 1 ? sum[i] : sum[i] / static_cast<A>(divisor));
  }
  static void sum_all(const T* const* sources, int count, std::int64_t n, A* sum) {
    count == 1 ? copy(sources[0], n, sum) : first_two(sources[0], sources[1], n, sum);
    for (int k = 2; k < count; ++k) next(sources[k], n, sum);
  }
};

// `sources` are in the order in which they are added. One node, or two members: each result is rounded once.
template <typename T, ReduceOp::RedOpType op>
void reduce_block(const std::vector<int>& node_sizes, const std::vector<const T*>& sources, std::int64_t n, int divisor,
                  T* output) {
  using A = at::opmath_type<T>;
  using Pass = Passes<T, op>;
  const int count = static_cast<int>(sources.size());
  A total[kBlock], node_sum[kBlock];
  if (count == 2 && divisor == 1) return Pass::only_two(sources[0], sources[1], n, output);
  if (node_sizes.size() == 1 && divisor == 1 && count > 2) {
    Pass::sum_all(sources.data(), count - 1, n, total);
    return Pass::last(total, sources.back(), n, output);
  }
  Pass::sum_all(sources.data(), node_sizes[0], n, total);
  if (node_sizes.size() > 1) Pass::round(n, total);
  int next = node_sizes[0];
  for (std::size_t node = 1; node < node_sizes.size(); ++node) {
    Pass::sum_all(sources.data() + next, node_sizes[node], n, node_sum);
    Pass::join_node(node_sum, n, total);
    next += node_sizes[node];
  }
  Pass::write(total, n, divisor, output);
}

template <typename T>
void reduce_typed(ReduceOp::RedOpType op, const ReduceOrder& order, std::span<const void* const> inputs, T* output,
                  std::int64_t numel) {
  const int divisor = op == ReduceOp::AVG ? static_cast<int>(order.members.size()) : 1;
  std::vector<const T*> sources(order.members.size());
  for (std::int64_t begin = 0; begin < numel; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, numel - begin);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      sources[k] = static_cast<const T*>(inputs[static_cast<std::size_t>(order.members[k])]) + begin;
    }
    switch (op) {
      case ReduceOp::MAX:
        reduce_block<T, ReduceOp::MAX>(order.node_sizes, sources, n, 1, output + begin);
        break;
      case ReduceOp::MIN:
        reduce_block<T, ReduceOp::MIN>(order.node_sizes, sources, n, 1, output + begin);
        break;
      default:
        reduce_block<T, ReduceOp::SUM>(order.node_sizes, sources, n, divisor, output + begin);
    }
  }
}

}  // namespace

ReduceOrder ReduceOrder::by_node(const std::vector<int>& node_of_member) {
  ReduceOrder order;
  order.members.resize(node_of_member.size());
  std::iota(order.members.begin(), order.members.end(), 0);
  const auto node_of = [&](int member) { return node_of_member[static_cast<std::size_t>(member)]; };
  std::ranges::stable_sort(order.members, [&](int a, int b) { return node_of(a) < node_of(b); });
  int last_node = -1;
  for (int member : order.members) {
    if (order.node_sizes.empty() || node_of(member) != last_node) order.node_sizes.push_back(0);
    ++order.node_sizes.back();
    last_node = node_of(member);
  }
  return order;
}

TESSERA_FOR_EACH_VECTOR_WIDTH
void ordered_reduce(c10::ScalarType type, ReduceOp::RedOpType op, const ReduceOrder& order,
                    std::span<const void* const> sources, void* output, std::int64_t numel) {
  switch (type) {
    case c10::kFloat:
      return reduce_typed(op, order, sources, static_cast<float*>(output), numel);
    case c10::kHalf:
      return reduce_typed(op, order, sources, static_cast<c10::Half*>(output), numel);
    case c10::kBFloat16:
      return reduce_typed(op, order, sources, static_cast<c10::BFloat16*>(output), numel);
    case c10::kLong:
      return reduce_typed(op, order, sources, static_cast<std::int64_t*>(output), numel);
    case c10::kInt:
      return reduce_typed(op, order, sources, static_cast<std::int32_t*>(output), numel);
    case c10::kByte:
      return reduce_typed(op, order, sources, static_cast<std::uint8_t*>(output), numel);
    default:
      check_reducible(type, op);
  }
}

void check_reducible(c10::ScalarType type, ReduceOp::RedOpType op) {
  constexpr c10::ScalarType kTypes[] = {c10::kFloat, c10::kHalf, c10::kBFloat16, c10::kLong, c10::kInt, c10::kByte};
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
    throw Error(fmt::format("cannot reduce {} tensors: expected float32, float16, bfloat16, int64, int32 or uint8",
                            c10::toString(type)));
  }
  if (op != ReduceOp::SUM && op != ReduceOp::AVG && op != ReduceOp::MAX && op != ReduceOp::MIN) {
    throw Error(fmt::format("cannot reduce by {}: expected sum, avg, max or min", name_of(op)));
  }
  if (op == ReduceOp::AVG && c10::isIntegralType(type, true)) {
    throw Error(fmt::format("the average of {} tensors is not whole: reduce by sum and divide", c10::toString(type)));
  }
}

const char* name_of(ReduceOp::RedOpType op) {
  switch (op) {
    case ReduceOp::SUM:
      return "sum";
    case ReduceOp::AVG:
      return "avg";
    case ReduceOp::MAX:
      return "max";
    case ReduceOp::MIN:
      return "min";
    case ReduceOp::PRODUCT:
      return "product";
    default:
      return "a reduction outside c10d's SUM, AVG, MAX and MIN";
  }
}

}  // namespace tessera
