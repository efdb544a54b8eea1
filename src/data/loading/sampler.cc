#include "data/loading/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace tessera {

namespace {

void check(const SamplerOptions& options) {
  if (options.num_rows < 0 || options.num_ranks < 1 || options.rank < 0 || options.rank >= options.num_ranks ||
      options.batch_size < 1) {
    throw Error(fmt::format("a sampler cannot serve rank {} of {} with {} rows in batches of {}", options.rank,
                            options.num_ranks, options.num_rows, options.batch_size));
  }
}

// The number of indices that all ranks together take at a time.
std::int64_t round_of(const SamplerOptions& options) {
  // A single rank needs no evening out: its last batch is just shorter, unless short ones are dropped.
  if (options.num_ranks == 1 && options.tail != Tail::kDrop) return 1;
  return options.num_ranks * (options.share == Share::kBatches ? options.batch_size : 1);
}

// How many of `num_left` indices are this rank's.
std::int64_t share_of(const SamplerOptions& options, std::int64_t num_left) {
  const std::int64_t round = round_of(options), own = round / options.num_ranks, rest = num_left % round;
  const std::int64_t num_whole = num_left / round * own;
  if (rest == 0 || options.tail == Tail::kDrop) return num_whole;
  if (options.tail == Tail::kRepeat) return num_whole + own;
  return num_whole + std::clamp<std::int64_t>(rest - options.rank * own, 0, own);
}

// torch.randperm(n) with a generator seeded with `seed`.
std::vector<std::int64_t> torch_permutation(std::int64_t n, std::uint64_t seed) {
  const at::Tensor numbers =
      at::randperm(n, at::detail::createCPUGenerator(seed), at::TensorOptions().dtype(at::kLong));
  const std::int64_t* data = numbers.const_data_ptr<std::int64_t>();
  return {data, data + numbers.numel()};
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  check(options_);
  start_epoch(0);
}

void Sampler::start_epoch(std::int64_t epoch, std::int64_t num_taken) {
  // Repeated indices at the epoch's end count too. No epoch repeats more than one round of its own number of ranks,
  // which may have differed: so `num_taken` may be more than there are rows.
  if (epoch < 0 || num_taken < 0) {
    throw Error(fmt::format("a sampler cannot start at epoch {} after {} indices", epoch, num_taken));
  }
  if (epoch != epoch_) order_.clear();
  epoch_ = epoch;
  num_taken_ = num_taken;
  num_own_ = share_of(options_, std::max<std::int64_t>(0, options_.num_rows - num_taken));
}

std::int64_t Sampler::place_of(std::int64_t i) const {
  const std::int64_t round = round_of(options_), own = round / options_.num_ranks;
  return num_taken_ + i / own * round + options_.rank * own + i % own;
}

std::int64_t Sampler::index(std::int64_t i) {
  if (i < 0 || i >= num_own_) throw Error(fmt::format("a sampler of {} indices has no index {}", num_own_, i));
  const std::int64_t place = place_of(i) % options_.num_rows;
  if (options_.order == Order::kSequential) return place;
  if (order_.empty()) order_ = torch_permutation(options_.num_rows, options_.seed + static_cast<std::uint64_t>(epoch_));
  return order_[static_cast<std::size_t>(place)];
}

std::vector<std::int64_t> Sampler::indices() {
  std::vector<std::int64_t> all(static_cast<std::size_t>(num_own_));
  for (std::int64_t i = 0; i < num_own_; ++i) all[static_cast<std::size_t>(i)] = index(i);
  return all;
}

std::vector<std::vector<std::int64_t>> Sampler::batches(std::int64_t batch_size) {
  if (batch_size < 1) throw Error(fmt::format("a batch of {} rows is not possible (expected: at least 1)", batch_size));
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t i = 0; i < num_own_; ++i) {
    if (i % batch_size == 0) all.emplace_back();
    all.back().push_back(index(i));
  }
  return all;
}

}  // namespace tessera
