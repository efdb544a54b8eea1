// Which rows of a data set a rank sees, in which order, epoch after epoch.
//
// The order of an epoch is one permutation for all ranks; a rank takes its share of it. Index for index this is
//   order          share              as
//   kSequential    one rank           torch's SequentialSampler
//   kShuffled      kIndices           torch's DistributedSampler(seed=seed), after set_epoch(epoch)
//   kShuffled      one rank           the Hugging Face Trainer's sampler (accelerate's SeedableRandomSampler): its seed
//                                     is --data_seed, else --seed; the permutation is that of seed + epoch
//   kShuffled      kBatches           the Trainer's on several ranks: batch i goes to rank i modulo their number
//
// The state is the epoch and how many of its indices all ranks together have taken. It is the same on every rank and
// does not depend on their number: a run may resume with more or fewer ranks, and each index is still taken once.
// Getting an index or resuming takes the same time at any step; the first access in an epoch makes the permutation.
//
// Not thread-safe: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

enum class Order { kSequential, kShuffled };

// kIndices: every num_ranks-th index. kBatches: every num_ranks-th run of batch_size indices.
enum class Share { kIndices, kBatches };

// What happens where the data set does not divide evenly between the ranks.
enum class Tail {
  kRepeat,  // reuse indices from the epoch's start, so that all ranks have equally many (torch's default)
  kDrop,    // leave out the last ones (torch's drop_last)
  kUneven,  // each index once, some ranks have fewer: for metrics that count every row once
};

struct SamplerOptions {
  std::int64_t num_rows = 0;
  int rank = 0, num_ranks = 1;
  Order order = Order::kShuffled;
  std::uint64_t seed = 0;
  Tail tail = Tail::kRepeat;
  Share share = Share::kIndices;
  std::int64_t batch_size = 1;  // for kBatches
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Begins an epoch, or resumes in the middle of one: after all ranks together have taken so many of its indices.
  void start_epoch(std::int64_t epoch, std::int64_t num_taken = 0);

  // This rank's indices, from where the epoch began or was resumed.
  std::int64_t size() const { return num_own_; }
  std::int64_t index(std::int64_t i);
  std::vector<std::int64_t> indices();
  // Batches of `batch_size`, the last one shorter.
  std::vector<std::vector<std::int64_t>> batches(std::int64_t batch_size);

 private:
  std::int64_t place_of(std::int64_t i) const;  // in the epoch's order, repeated as often as needed

  SamplerOptions options_;
  std::int64_t epoch_ = 0, num_taken_ = 0;
  std::int64_t num_own_ = 0;
  std::vector<std::int64_t> order_;  // empty: not made, or sequential
};

}  // namespace tessera
