// checkpoint-STEP of Hugging Face's Trainer: a model folder, optimizer.pt (under FSDP with whole states optimizer.bin),
// scheduler.pt, and with fp16 scaler.pt.
#pragma once

#include <filesystem>

#include "weights/foreign/foreign_checkpoint.h"
#include "weights/foreign/foreign_tensors.h"

namespace tessera {

bool is_trainer_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_trainer_folder(const std::filesystem::path& folder);

// The schedule's place and the loss scale, from files that the Trainer writes beside every kind of checkpoint; what is
// not there is left as it is.
void read_trainer_progress(ForeignTensors& tensors);

}  // namespace tessera
