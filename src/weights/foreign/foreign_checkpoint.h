// Checkpoints of other programs, as an index of our own kind whose parts point into their files: no data is read or
// copied to open one, and any range of any tensor can be read (weights/checkpoint_reader.h).
//
// Known: Hugging Face's Trainer, torch.distributed.checkpoint, accelerate's FSDP folders, DeepSpeed's ZeRO 1 to 3.
// docs/formats.md says what is taken over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weights/checkpoint_index.h"

namespace tessera {

struct ForeignCheckpoint {
  // Names as ours, without checksums. `numbers` has what the files tell of the updates and the loss scale.
  CheckpointIndex index;
  // Optimizer states that the files number: torch's optimizers count the parameters of their groups. By number, then
  // by the state's name.
  std::map<std::int64_t, std::map<std::string, StoredTensor>> numbered;
  std::vector<std::vector<std::int64_t>> groups;  // the numbers of each group's parameters
  std::optional<std::int64_t> num_advanced;       // steps of the learning rate's schedule
  std::vector<std::string> left;                  // what is not taken over
};

// What wrote this folder: "Hugging Face's Trainer"; empty: none of the known programs. Only names of files are looked
// at.
std::string foreign_program(const std::filesystem::path& folder);

// Whether its weights lie in a form of the program's own, not as a model folder's.
bool has_foreign_weights(const std::filesystem::path& folder);

// Throws UsageError naming the file and the tensor or key that is missing, damaged or not supported.
ForeignCheckpoint open_foreign_checkpoint(const std::filesystem::path& folder);

}  // namespace tessera
