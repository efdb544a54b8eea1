// The checkpoints of a run: written and rotated.
//
// A checkpoint is written by all ranks (state_snapshot.h) and appears by one rename.
//
// Collective, between updates. If a rank fails, every rank throws the same error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "state/model_output.h"
#include "state/state_snapshot.h"
#include "tessera/world.h"
#include "train/listener.h"
#include "train/trainer.h"

namespace tessera {

class CheckpointKeeper {
 public:
  // All arguments must outlive it. Removes incomplete checkpoints of a run that was killed. `check_lock`: called by
  // rank 0 before a checkpoint appears; throws if the folder is another run's by now.
  CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output, Listeners& listeners,
                   std::function<void()> check_lock = {});

  // output_dir/checkpoint-STEP: the state of all ranks, trainer_state.json, the model's files without weights, and the
  // index; or, if only the model is wanted, a model folder. As the settings say it returns when training may go on,
  // and complete() does the rest. Then older ones of this run are removed as save_total_limit says; those of another
  // run in the same folder stay, except one of the same step.
  void save(Trainer& trainer);
  // Whether this rank still writes what save() began; then complete() is due. Not collective.
  bool is_writing() const;
  // Waits for it, makes it appear and rotates. Does nothing if nothing was begun.
  void complete(Trainer& trainer);
  // Adopts what an earlier part of this run left: its checkpoints in the folder, and the best one anywhere.
  void adopt(const std::filesystem::path& checkpoint, const RunState& state);
  // The checkpoint of the best evaluation; nothing if it was not saved. The same on every rank.
  const std::optional<std::filesystem::path>& best() const { return best_; }

 private:
  std::filesystem::path folder_of(std::int64_t step) const;
  std::vector<std::int64_t> old_ones() const;
  void prepare(Trainer& trainer, const std::filesystem::path& part) const;
  void write_in_background(const RunState& state, std::shared_ptr<StateSnapshot> snapshot,
                           const std::filesystem::path& part);
  StateSnapshot::Copies copies_for(const StateSnapshot::Sizes& sizes) const;
  void appear(CheckpointIndex index, const std::vector<std::int64_t>& old);
  // Forgets what is being written, and takes it away if it is this run's.
  void give_up(RunState& state, bool removes = true);
  // Gives up because of this error. Returns it with what was not written and which checkpoint is the last complete one.
  Error given_up(RunState& state, const Error& error);

  World& world_;
  const SavedModel& model_;
  const OutputSettings& output_;
  Listeners& listeners_;
  std::function<void()> check_lock_;
  // A checkpoint that is being written.
  struct Open {
    RunMoment moment;
    std::filesystem::path folder;
    double began = 0;                       // in steady_seconds()
    std::map<std::string, double> numbers;  // of the optimizer
    bool has_state = true;                  // else only the model
    std::optional<std::filesystem::path> best_before;
    std::future<CheckpointIndex> written{};
  };

  std::set<std::int64_t> kept_;  // steps of this run's existing checkpoints
  std::optional<Open> open_;
  at::Tensor buffer_;          // of copies on the host
  std::future<void> removal_;  // of old ones, on rank 0
  std::optional<std::filesystem::path> best_;
};

}  // namespace tessera
