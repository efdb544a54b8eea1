// Dropout whose masks are a function of a key alone: the same key gives the same mask, in the forward pass and when
// activation checkpointing recomputes it. No global generator is left advanced, so ranks that are threads do not
// disturb each other.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>

namespace tessera {

// The keys of one forward pass: every unit and every place in it has its own.
class DropoutKeys {
 public:
  DropoutKeys() = default;  // inactive: dropout does nothing
  explicit DropoutKeys(std::uint64_t seed) : active_(true), state_(seed) {}

  bool active() const { return active_; }
  DropoutKeys child(std::uint64_t index) const;  // the keys of a unit
  std::uint64_t at(std::uint64_t place) const;   // the key of a place in a unit

 private:
  bool active_ = false;
  std::uint64_t state_ = 0;
};

// Mixes two words into one: neighbouring seeds, units and places give unrelated keys.
std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t index);

// For operations that use the device's default generator and accept no other: it is seeded with the key while this
// object lives and restored afterwards. The CPU's generator is process-wide, so only one scope at a time; a GPU belongs
// to one rank.
class SeededGenerator {
 public:
  SeededGenerator(const at::Device& device, std::uint64_t key);
  SeededGenerator(const SeededGenerator&) = delete;
  SeededGenerator& operator=(const SeededGenerator&) = delete;
  ~SeededGenerator();

 private:
  std::unique_lock<std::mutex> lock_;
  at::Generator generator_;
  at::Tensor state_;
};

// x with each element zeroed with `probability` (0 <= probability < 1) and the others divided by 1 - probability; x
// itself if the keys are inactive or the probability is 0. Differentiable.
at::Tensor dropout(const at::Tensor& x, double probability, const DropoutKeys& keys, std::uint64_t place);

}  // namespace tessera
