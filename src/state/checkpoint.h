// A folder from which a run may resume: what it is, found out once, and one way to read it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "state/unit_file.h"
#include "train/run_state.h"
#include "weights/checkpoint_reader.h"
#include "weights/foreign/foreign_checkpoint.h"

namespace tessera {

inline constexpr const char* kStateFile = "trainer_state.json";
// Of checkpoints before the index (weights/checkpoint_index.h), beside the model's weights.
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

class Checkpoint {
 public:
  enum class Kind {
    kSharded,  // all ranks wrote it: shards, checksums and an index
    kWhole,    // Tessera's before that: a model folder with optimizer.safetensors and trainer_state.json
    kForeign,  // another program's
    kModel,    // a model without a run's state: of --save_only_model, or any other model folder
    kNone,     // nothing, or not complete
  };

  // Looks at names of files alone. Not collective, as all of this class.
  static Checkpoint open(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  Kind kind() const { return kind_; }
  const std::string& program() const { return program_; }  // of kForeign: "DeepSpeed"
  // Whether each rank reads only its own part of the weights, through reader(). Those of the others are a model
  // folder's.
  bool is_read_in_parts() const { return kind_ == Kind::kSharded || kind_ == Kind::kForeign; }

  // Reads every byte that has a checksum; of several ranks each reads a share. Throws UsageError naming the file that
  // is missing or damaged, or saying what the folder is if a run cannot resume from it. Another program's is only
  // accepted if the user named it: a run's own are never mistaken for one.
  void check(int rank = 0, int num_ranks = 1, bool accepts_foreign = false) const;

  // Of another program's: step, epoch and history from trainer_state.json if it is there, else what the optimizer
  // counted.
  RunState run_state() const;

  // If is_read_in_parts(). Another program's gets the names of this model: optimizer states that are numbered get the
  // names of the model's parameters in torch's order, or, of two groups, first those with weight decay, as Hugging
  // Face's Trainer makes them; second names of tied parameters are left out. Throws UsageError if the numbers of
  // parameters do not fit.
  CheckpointReader reader(const SpreadModel& spread) const;

  // What of another program's checkpoint is not taken over.
  std::vector<std::string> left_out() const;

 private:
  Checkpoint() = default;
  const ForeignCheckpoint& foreign() const;
  [[noreturn]] void refuse() const;

  std::filesystem::path folder_;
  Kind kind_ = Kind::kNone;
  std::string program_;
  mutable std::shared_ptr<const ForeignCheckpoint> foreign_;  // once opened
};

}  // namespace tessera
