// Resuming from a checkpoint of another program (weights/foreign/foreign_checkpoint.h): which parameter each of its
// optimizer states belongs to, and the state of its run.
#pragma once

#include <filesystem>
#include <string>

#include "state/unit_file.h"
#include "train/run_state.h"
#include "weights/checkpoint_reader.h"
#include "weights/foreign/foreign_checkpoint.h"

namespace tessera {

// Every file is there with the bytes that the checkpoint speaks of. Throws UsageError. Not collective.
void check_foreign_checkpoint(const std::filesystem::path& folder);

// Step, epoch and history from trainer_state.json if it is there, else what the optimizer counted.
RunState foreign_run_state(const std::filesystem::path& folder);

// With names of this model: optimizer states that are numbered get the names of the model's parameters in torch's
// order, or, of two groups, first those with weight decay, as Hugging Face's Trainer makes them; second names of tied
// parameters are left out. Throws UsageError if the numbers of parameters do not fit.
CheckpointReader foreign_reader(const std::filesystem::path& folder, const SpreadModel& spread);

}  // namespace tessera
