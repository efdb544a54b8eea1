#include "model/sampling.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace tessera {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

void keep_top_k(at::Tensor& scores, std::int64_t k) {
  const std::int64_t kept = std::min(k, scores.size(-1));
  const at::Tensor least = std::get<0>(at::topk(scores, kept)).slice(-1, kept - 1);
  scores.masked_fill_(scores < least, kOut);
}

void keep_top_p(at::Tensor& scores, double p) {
  const auto [sorted, order] = at::sort(scores, /*stable=*/false, /*dim=*/-1, /*descending=*/false);
  at::Tensor removed = at::softmax(sorted, -1).cumsum(-1) <= 1 - p;
  removed.slice(-1, removed.size(-1) - 1).fill_(false);  // the best token stays
  scores.masked_fill_(removed.scatter(-1, order, removed), kOut);
}

}  // namespace

void check_sampling(const Sampling& sampling) {
  if (!(sampling.temperature > 0)) {
    throw UsageError(fmt::format("temperature {}: expected a number above 0 (for the best token, turn sampling off)",
                                 sampling.temperature));
  }
  if (sampling.top_k < 0) throw UsageError(fmt::format("top_k {}: expected 0 (all) or more", sampling.top_k));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    throw UsageError(fmt::format("top_p {}: expected a number above 0 and at most 1", sampling.top_p));
  }
}

at::Tensor filter_scores(const at::Tensor& scores, const Sampling& sampling) {
  at::Tensor filtered = scores.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  if (sampling.temperature != 1) filtered.div_(sampling.temperature);
  if (sampling.top_k > 0) keep_top_k(filtered, sampling.top_k);
  if (sampling.top_p < 1) keep_top_p(filtered, sampling.top_p);
  return filtered;
}

at::Tensor choose_tokens(const at::Tensor& scores, const Sampling& sampling, at::Generator& generator) {
  const at::Tensor broken = at::isfinite(scores).all(-1).logical_not();
  if (!sampling.do_sample) return at::argmax(scores, -1).masked_fill_(broken, kNoToken);
  // multinomial kills a GPU's context if a probability is NaN: broken rows are drawn from something else.
  const at::Tensor sound = scores.masked_fill(broken.unsqueeze(1), 0);
  const at::Tensor probabilities = at::softmax(filter_scores(sound, sampling), -1);
  return at::multinomial(probabilities, 1, /*replacement=*/false, generator).squeeze(1).masked_fill_(broken, kNoToken);
}

at::Generator make_generator(const at::Device& device, std::uint64_t seed) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed);
  at::Generator generator = at::detail::getCUDAHooks().getNewGenerator(device.index());
  generator.set_current_seed(seed);
  return generator;
}

}  // namespace tessera
