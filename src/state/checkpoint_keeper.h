// The checkpoints of a run: written and rotated.
//
// A checkpoint is written by all ranks (sharded_state.h) and appears by one rename.
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
#include "settings/train_settings.h"
#include "state/model_output.h"
#include "state/sharded_state.h"
#include "tessera/world.h"
#include "train/checkpointer.h"

namespace tessera {

class CheckpointKeeper : public Checkpointer {
 public:
  // All arguments must outlive it. Removes incomplete checkpoints of a run that was killed. `check_lock`: called by
  // rank 0 before a checkpoint appears; throws if the folder is another run's by now.
  CheckpointKeeper(World& world, const SavedModel& model, const OutputSettings& output, Listeners& listeners,
                   std::function<void()> check_lock = {});

  // output_dir/checkpoint-STEP: the state of all ranks, trainer_state.json, the model's files without weights, and the
  // index; or, if only the model is wanted, a model folder. As the settings say it is written in the background. When
  // it is complete, it appears, and older ones of this run are removed as save_total_limit says; those of another run
  // in the same folder stay, except one of the same step.
  void save(const TrainingView& view) override;
  bool is_writing() const override;
  void poll(bool any_rank_was_writing) override;
  void finish() override;
  std::optional<std::int64_t> saved_step() const override { return saved_step_; }
  std::int64_t num_failures() const override { return num_failures_; }

  // Adopts what an earlier part of this run left: its checkpoints in the folder, and the best one anywhere.
  void adopt(const std::filesystem::path& checkpoint, const RunProgress& progress);
  // The checkpoint of the best evaluation; nothing if it was not saved. The same on every rank.
  const std::optional<std::filesystem::path>& best() const { return best_; }

 private:
  std::filesystem::path folder_of(std::int64_t step) const;
  std::vector<std::int64_t> old_ones() const;
  // Whether it succeeded; an error is thrown on, or shown and ignored, as the settings say.
  bool try_to(const std::function<void()>& work);
  void begin(const TrainingView& view);
  void prepare(Engine& engine, const std::filesystem::path& part) const;
  void write_in_background(std::shared_ptr<StateSnapshot> snapshot, const std::filesystem::path& part);
  // Waits for what was begun, makes it appear and rotates. Does nothing if nothing was begun.
  void complete();
  StateSnapshot::Copies copies_for(const StateSnapshot::Sizes& sizes) const;
  void appear(CheckpointIndex index, const std::vector<std::int64_t>& old);
  // Forgets what is being written, and takes it away if it is this run's.
  void give_up(bool removes = true);
  // Gives up because of this error. Returns it with what was not written and which checkpoint is the last complete one.
  Error given_up(const Error& error);

  World& world_;
  const SavedModel& model_;
  const OutputSettings& output_;
  Listeners& listeners_;
  std::function<void()> check_lock_;
  // A checkpoint that is being written.
  struct Open {
    TrainingView view;
    std::filesystem::path folder;
    double began = 0;                       // in steady_seconds()
    std::map<std::string, double> numbers;  // of the optimizer
    bool has_state = true;                  // else only the model
    std::optional<std::filesystem::path> best_before;
    std::future<CheckpointIndex> written{};
  };

  std::set<std::int64_t> kept_;  // steps of this run's existing checkpoints
  std::optional<Open> open_;
  int num_polls_ = 0;  // since save()
  std::optional<std::int64_t> saved_step_;
  std::int64_t num_failures_ = 0;
  at::Tensor buffer_;          // of copies on the host
  std::future<void> removal_;  // of old ones, on rank 0
  std::optional<std::filesystem::path> best_;
};

}  // namespace tessera
