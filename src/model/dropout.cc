#include "model/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>

namespace tessera {
namespace {

std::unique_lock<std::mutex> lock_for(const at::Device& device) {
  static std::mutex mutex;
  return device.is_cpu() ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

}  // namespace

SeededGenerator::SeededGenerator(const at::Device& device, std::uint64_t key)
    : lock_(lock_for(device)),
      generator_(at::globalContext().defaultGenerator(device)),
      state_(generator_.get_state()) {
  generator_.set_current_seed(key);
}

SeededGenerator::~SeededGenerator() {
  generator_.set_state(state_);
}

std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t index) {
  // splitmix64's finaliser over a Weyl step.
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

DropoutKeys DropoutKeys::child(std::uint64_t index) const {
  return active_ ? DropoutKeys(mix_seed(state_, index)) : DropoutKeys();
}

std::uint64_t DropoutKeys::at(std::uint64_t place) const {
  return mix_seed(~state_, place);  // ~: a place's key never equals a unit's state
}

at::Tensor dropout(const at::Tensor& x, double probability, const DropoutKeys& keys, std::uint64_t place) {
  if (!keys.active() || probability == 0) return x;
  if (x.is_cuda()) {
    const SeededGenerator seeded(x.device(), keys.at(place));  // native_dropout is one kernel, but takes no generator
    return std::get<0>(at::native_dropout(x, probability, true));
  }
  at::Tensor scale = at::empty_like(x, x.options().requires_grad(false));
  scale.bernoulli_(1 - probability, at::detail::createCPUGenerator(keys.at(place)));
  scale.div_(1 - probability);
  return at::mul(x, scale);
}

}  // namespace tessera
