#include "data/loading/random_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/error.h"

namespace tessera {

namespace {

void append(std::vector<std::int64_t>& indices, const at::Tensor& numbers) {
  const std::int64_t* data = numbers.const_data_ptr<std::int64_t>();
  indices.insert(indices.end(), data, data + numbers.numel());
}

at::Tensor permutation(std::int64_t n, const at::Generator& generator) {
  return at::randperm(n, generator, at::TensorOptions().dtype(at::kLong));
}

// A generator's get_state() and set_state() require its lock; ours is used by one thread.
std::string hex_state(const at::Generator& generator) {
  const at::Tensor state = generator.get_state();
  std::string digits;
  for (std::int64_t i = 0; i < state.numel(); ++i)
    digits += fmt::format("{:02x}", state.const_data_ptr<std::uint8_t>()[i]);
  return digits;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

at::Tensor state_of_hex(const std::string& digits, std::int64_t num_bytes) {
  if (std::ssize(digits) != 2 * num_bytes) {
    throw Error(fmt::format("a generator's state has {} hexadecimal digits, found {}", 2 * num_bytes, digits.size()));
  }
  const at::Tensor state = at::empty({num_bytes}, at::TensorOptions().dtype(at::kByte));
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit_of(digits[i]), low = digit_of(digits[i + 1]);
    if (high < 0 || low < 0) throw Error("a generator's state has hexadecimal digits only");
    state.mutable_data_ptr<std::uint8_t>()[i / 2] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return state;
}

}  // namespace

std::vector<std::int64_t> torch_permutation(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> indices;
  append(indices, permutation(n, at::detail::createCPUGenerator(seed)));
  return indices;
}

RandomSampler::RandomSampler(const RandomSamplerOptions& options)
    : options_(options), generator_(at::detail::createCPUGenerator(options.seed)) {
  if (options_.num_samples < 0) options_.num_samples = options_.num_rows;
  if (options_.num_rows < 1) throw Error("a random sampler needs at least one row");
  draw_epoch();
}

// The generator is left where torch leaves it when the epoch is used up: without replacement torch draws one
// permutation more than it needs, for the remainder.
void RandomSampler::draw_epoch() {
  generator_before_ = hex_state(generator_);
  num_taken_before_ = 0;
  indices_.clear();
  constexpr std::int64_t kAtATime = 32;
  const std::int64_t n = options_.num_rows, count = options_.num_samples;
  if (options_.replacement) {
    for (std::int64_t left = count; left >= 0; left -= kAtATime) {
      append(indices_, at::randint(n, {std::min(left, kAtATime)}, generator_, at::TensorOptions().dtype(at::kLong)));
    }
    return;
  }
  for (std::int64_t i = 0; i < count / n; ++i) append(indices_, permutation(n, generator_));
  append(indices_, permutation(n, generator_).slice(0, 0, count % n));
}

void RandomSampler::next_epoch() {
  draw_epoch();
  ++epoch_;
}

RandomSamplerState RandomSampler::state_after(std::int64_t num_taken) const {
  if (num_taken < 0 || num_taken > std::ssize(indices_)) {
    throw Error(fmt::format("a sampler of {} indices has no state after {}", indices_.size(), num_taken));
  }
  return {epoch_, num_taken_before_ + num_taken, generator_before_};
}

void RandomSampler::resume(const RandomSamplerState& state) {
  if (state.epoch < 0 || state.num_taken < 0 || state.num_taken > options_.num_samples) {
    throw Error(fmt::format("a random sampler cannot resume at epoch {} after {} of {} indices", state.epoch,
                            state.num_taken, options_.num_samples));
  }
  const at::Tensor bytes = state_of_hex(state.generator, generator_.get_state().numel());
  try {
    generator_.set_state(bytes);
  } catch (const c10::Error& error) {
    throw Error(fmt::format("a random sampler's generator state is invalid: {}", error.what_without_backtrace()));
  }
  draw_epoch();
  epoch_ = state.epoch;
  num_taken_before_ = state.num_taken;
  indices_.erase(indices_.begin(), indices_.begin() + state.num_taken);
}

}  // namespace tessera
