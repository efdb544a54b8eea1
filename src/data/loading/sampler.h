// Which rows of a data set a rank sees, in which order, epoch after epoch.
//
// The order of an epoch is one permutation for all ranks; a rank takes its share of it. Index for index this is
//   order          share              as
//   kSequential    one rank           torch's SequentialSampler
//   kShuffled      kIndices           torch's DistributedSampler(seed=seed), after set_epoch(epoch)
//   kShuffled      one rank           the Hugging Face Trainer's sampler (accelerate's SeedableRandomSampler): its seed
//                                     is --data_seed, else --seed; the permutation is that of seed + epoch
//   kShuffled      kBatches           the Trainer's on several ranks: batch i goes to rank i modulo their number
// torch's own RandomSampler, whose generator runs on from epoch to epoch, is random_sampler.h.
//
// The state is the epoch and how many indices of it all ranks together have taken. It is the same on every rank and
// does not depend on their number: a run may go on with more or fewer ranks, each index still taken once. Asking for an
// index or resuming takes the same time at any step; the first question in an epoch makes the permutation.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/json.h"

namespace tessera {

enum class Order { kSequential, kShuffled };

// kIndices: every num_ranks-th index. kBatches: every num_ranks-th run of batch_size indices.
enum class Share { kIndices, kBatches };

// Where the ranks' shares do not come out even.
enum class Tail {
  kRepeat,  // indices from the epoch's start are taken again, so that all ranks have as many (torch's default)
  kDrop,    // the last ones are left out (torch's drop_last)
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

struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t num_taken = 0;  // of this epoch's indices, by all ranks together
  std::int64_t num_rows = 0;   // of the data set: in one of another size the numbers above mean nothing
};

Json to_json(const SamplerState& state);
// Throws UsageError naming `origin` where the object is no such state.
SamplerState sampler_state(const Json& object, const std::string& origin);

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // Begins an epoch, or goes on in the middle of one. Throws UsageError where the state is of a data set of another
  // size.
  void resume(const SamplerState& state);
  void start_epoch(std::int64_t epoch) { resume({epoch, 0, options_.num_rows}); }
  std::int64_t epoch() const { return start_.epoch; }

  // This rank's indices from where the epoch began or was resumed.
  std::int64_t size() const { return num_own_; }
  std::int64_t index(std::int64_t i);
  std::vector<std::int64_t> indices();
  // Whether the i-th is there only to make the ranks even.
  bool is_repeated(std::int64_t i) const { return place_of(i) >= options_.num_rows; }
  // Batches of `batch_size`, the last one shorter.
  std::vector<std::vector<std::int64_t>> batches(std::int64_t batch_size);

  // The state after every rank has taken `num_own` of its indices: whole batches for kBatches, or all. Where ranks have
  // more and fewer (kUneven), rank 0 has the most and knows when the epoch is over.
  SamplerState state_after(std::int64_t num_own) const;

 private:
  std::int64_t place_of(std::int64_t i) const;  // in the epoch's order, which is repeated as often as it takes

  SamplerOptions options_;
  SamplerState start_;
  std::int64_t num_own_ = 0;
  std::vector<std::int64_t> order_;  // empty: not made, or sequential
};

}  // namespace tessera
