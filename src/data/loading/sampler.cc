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

Json to_json(const SamplerState& state) {
  return {{"epoch", state.epoch}, {"num_taken", state.num_taken}, {"num_rows", state.num_rows}};
}

SamplerState sampler_state(const Json& object, const std::string& origin) {
  const auto number = [&](const char* key) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer() ||
        object[key].get<double>() < 0 || object[key].get<double>() > 1e18) {
      throw UsageError(fmt::format("{}: expected a sampler's state with a whole number \"{}\"", origin, key));
    }
    return object[key].get<std::int64_t>();
  };
  return {number("epoch"), number("num_taken"), number("num_rows")};
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  check(options_);
  start_epoch(0);
}

void Sampler::resume(const SamplerState& state) {
  // The state also counts repeated indices at the epoch's end. No epoch repeats more than one round of its own number
  // of ranks, which may have differed. So only impossible states are refused.
  if (state.epoch < 0 || state.num_taken < 0) {
    throw Error(fmt::format("a sampler cannot resume at epoch {} after {} indices", state.epoch, state.num_taken));
  }
  if (state.num_rows != options_.num_rows) {
    throw UsageError(
        fmt::format("the run to resume was at epoch {} of a data set of {} rows, but this one has {}: use the same "
                    "data (file and number of samples), or start a new run",
                    state.epoch, state.num_rows, options_.num_rows));
  }
  if (state.epoch != start_.epoch) order_.clear();
  start_ = state;
  num_own_ = share_of(options_, std::max<std::int64_t>(0, options_.num_rows - state.num_taken));
}

std::int64_t Sampler::place_of(std::int64_t i) const {
  const std::int64_t round = round_of(options_), own = round / options_.num_ranks;
  return start_.num_taken + i / own * round + options_.rank * own + i % own;
}

std::int64_t Sampler::index(std::int64_t i) {
  if (i < 0 || i >= num_own_) throw Error(fmt::format("a sampler of {} indices has no index {}", num_own_, i));
  const std::int64_t place = place_of(i) % options_.num_rows;
  if (options_.order == Order::kSequential) return place;
  if (order_.empty())
    order_ = torch_permutation(options_.num_rows, options_.seed + static_cast<std::uint64_t>(start_.epoch));
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

SamplerState Sampler::state_after(std::int64_t num_own) const {
  const std::int64_t own = round_of(options_) / options_.num_ranks;
  if (num_own < 0 || num_own > num_own_ || (num_own % own != 0 && num_own != num_own_)) {
    throw Error(fmt::format("a sampler of {} indices in runs of {} has no state after {}", num_own_, own, num_own));
  }
  return {start_.epoch, start_.num_taken + num_own * options_.num_ranks, options_.num_rows};
}

}  // namespace tessera
