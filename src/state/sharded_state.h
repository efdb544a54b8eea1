// The state of a spread model, written and read by all ranks: each its own file, state-RRRRR-of-NNNNN.safetensors, and
// one index (weights/checkpoint_index.h).
//
// Collective, between steps. What several ranks hold alike, each writes an equal share of.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "parallel/offload.h"
#include "parallel/train_step.h"
#include "state/unit_file.h"
#include "weights/checkpoint_index.h"
#include "weights/checkpoint_reader.h"

namespace tessera {

// A part of a tensor, as one rank holds it.
struct StatePiece {
  std::string name;
  std::vector<std::int64_t> shape;  // of the whole tensor
  std::int64_t begin = 0;           // its first element, in row-major order
  std::int64_t numel = 0;
  std::size_t region = 0;   // where its values are: in this one of the snapshot's regions,
  std::int64_t offset = 0;  // from here
};

// A rank's share of the state. Regions are flat, on any device, and as long as possible, a unit's masters or one of its
// moments: a copy of each takes little of the host's time, of each tensor ten times as much.
struct StateShare {
  std::vector<kernels::SplitFloats> regions;
  std::vector<std::size_t> regions_until;  // by unit: how many regions there are up to its last
  std::vector<StatePiece> pieces;

  kernels::SplitFloats values(const StatePiece& piece) const {
    return regions[piece.region].narrow(piece.offset, piece.numel);
  }
};

// What a rank writes: its share of the parameters, buffers and optimizer states.
class StateSnapshot {
 public:
  // kNone: views of the state itself, valid until the next update. kOnDevice: each where it is. On the host:
  // page-locked if pinned; `buffer` is used again if it is large enough.
  enum class Copies { kNone, kOnDevice, kOnHost, kOnHostPinned };

  // Waits for updates that still run. Collective.
  StateSnapshot(const SpreadModel& spread, const TrainStep& step);
  // Of what lies in the host's memory, or in a GPU's.
  struct Sizes {
    std::int64_t on_host = 0, on_device = 0;
    std::int64_t sum() const { return on_host + on_device; }
  };
  Sizes sizes() const;
  // When it returns, training may go on, but for the next update of what lies on the device: that waits for the
  // results, by unit; empty: for nothing.
  std::vector<Transfer> copy(Copies copies, at::Tensor& buffer);

  // After copy(). This rank's file, which appears complete, and what the index says about it. Not collective; from any
  // thread.
  CheckpointIndex write(const std::filesystem::path& folder) const;

 private:
  at::Device device_;
  int rank_, num_ranks_;
  StateShare share_;
  Transfer copied_;
};

// Rank 0 gets the index of what all ranks wrote, to complete and to write; the other ranks an empty one. `numbers`: of
// the optimizer, when it was written.
CheckpointIndex gather_index(const SpreadModel& spread, const std::map<std::string, double>& numbers,
                             const CheckpointIndex& own);

// Adds a file of the folder with its checksums. Throws UsageError.
void add_file(CheckpointIndex& index, const std::filesystem::path& file);

// The reverse, on any number of ranks under any strategy; each reads only its own part. Reads parameters, buffers and
// the optimizer's states into the model. Throws the same error on every rank if any of them finds a damaged or missing
// byte, or if the tensors are not the model's; the values are then unusable.
OptimizerProgress read_state(const SpreadModel& spread, const TrainStep& step, CheckpointReader& reader);
// Only parameters and buffers.
void read_model_state(const SpreadModel& spread, CheckpointReader& reader);

}  // namespace tessera
