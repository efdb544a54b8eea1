// Checkpoints on disk: what is in an output folder, whether it is intact, and how it goes. Not collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/run_state.h"

namespace tessera {

inline constexpr const char* kStateFile = "trainer_state.json";
// Of checkpoints before the index (weights/checkpoint_index.h), beside the model's weights.
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

// Where a checkpoint is written until it is complete. A run that is killed may leave one behind.
std::filesystem::path unfinished(const std::filesystem::path& checkpoint);
// Also what else a killed run left of its files.
void remove_unfinished(const std::filesystem::path& output_dir);

// What is there, the one to resume first: the last of the run that started last, since an older run in the same folder
// may have got further.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& output_dir);

// Whether its weights lie in shards with an index; older ones have a model folder's.
bool has_sharded_weights(const std::filesystem::path& checkpoint);

// Whether each rank reads only its own part of the weights: of such shards, or of another program's checkpoint.
bool ranks_read_parts_of(const std::filesystem::path& checkpoint);

// Saved by --save_only_model, or any other model folder.
bool holds_only_a_model(const std::filesystem::path& folder);

// Reads every byte that has a checksum; of several ranks each reads a share. Throws UsageError naming the file that is
// missing or damaged.
void check_checkpoint(const std::filesystem::path& checkpoint, int rank = 0, int num_ranks = 1);

// Throws Error if `file`, which rank 0 has made, is not seen here.
void check_is_shared(const std::filesystem::path& file);
// Whether the checkpoint is directly in `output_dir`.
bool is_in_folder(const std::filesystem::path& checkpoint, const std::filesystem::path& output_dir);

// Of another program's too.
RunState read_checkpoint_state(const std::filesystem::path& checkpoint);

// Whenever the process is killed, a checkpoint is complete or absent: it goes out of sight by a rename, which is quick,
// and what that returns is then deleted. One that cannot be removed is a warning.
std::filesystem::path put_aside(const std::filesystem::path& checkpoint);
void delete_folder(const std::filesystem::path& aside);
void remove_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace tessera
