// torch's RandomSampler(generator=torch.Generator().manual_seed(seed)), index for index.
//
// Its generator continues from epoch to epoch, so an epoch's order depends on all before it: the state holds the
// generator's own state (5 kB), and resuming redraws nothing. Runs over several ranks use sampler.h, whose orders
// depend on seed and epoch alone.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// torch.randperm(n) with a generator seeded with `seed`.
std::vector<std::int64_t> torch_permutation(std::int64_t n, std::uint64_t seed);

struct RandomSamplerOptions {
  std::int64_t num_rows = 0;
  std::int64_t num_samples = -1;  // indices per epoch; negative: num_rows
  bool replacement = false;       // draw each index from all rows
  std::uint64_t seed = 0;
};

struct RandomSamplerState {
  std::int64_t epoch = 0;
  std::int64_t num_taken = 0;  // of this epoch's indices
  std::string generator;       // its state before this epoch, in hexadecimal digits
};

class RandomSampler {
 public:
  explicit RandomSampler(const RandomSamplerOptions& options);

  // The remaining indices of the current epoch; after construction that is epoch 0.
  const std::vector<std::int64_t>& indices() const { return indices_; }
  void next_epoch();

  std::int64_t epoch() const { return epoch_; }
  // The state after the first `num_taken` of indices().
  RandomSamplerState state_after(std::int64_t num_taken) const;
  // Throws Error if the generator's state is invalid; then nothing has changed.
  void resume(const RandomSamplerState& state);

 private:
  void draw_epoch();

  RandomSamplerOptions options_;
  at::Generator generator_;
  std::int64_t epoch_ = 0, num_taken_before_ = 0;
  std::string generator_before_;
  std::vector<std::int64_t> indices_;
};

}  // namespace tessera
