// The checkpoints of a run: written, rotated, resumed.
//
// A checkpoint is written by all ranks (sharded_state.h) and appears by one rename. Older ones are read too: a model
// folder with optimizer.safetensors and trainer_state.json, written by rank 0.
//
// Collective, between updates. If a rank fails, every rank throws the same error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "state/model_output.h"
#include "state/sharded_state.h"
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
  // index; or, if only the model is wanted, a model folder. As the settings say it returns when the state is copied,
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

// The folder to resume from; none if the settings do not ask for one. All of its bytes have been checked; broken ones
// are named and passed over, or refused if named by the user. Throws UsageError if there is none. Collective.
std::optional<std::filesystem::path> checkpoint_to_resume(World& world, const OutputSettings& output);
// Throws Error if `file`, which rank 0 has made, is not seen here. Not collective.
void check_is_shared(const std::filesystem::path& file);
// Whether the checkpoint is directly in `output_dir`.
bool is_in_folder(const std::filesystem::path& checkpoint, const std::filesystem::path& output_dir);
// Restores the checkpoint's weights, optimizer states, loss scale and run state. Weights that are not sharded are
// already the engine's first values. Works under any strategy and number of ranks.
void resume(World& world, Trainer& trainer, const SavedModel& model, const std::filesystem::path& checkpoint,
            const RunState& state);

// Loads a checkpoint's weights and buffers into the engine and the model: for load_best_model_at_end.
void load_checkpoint_weights(World& world, Engine& engine, const SavedModel& model,
                             const std::filesystem::path& folder);

}  // namespace tessera
