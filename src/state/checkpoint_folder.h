// The checkpoints of an output folder: their names, which there are, which go, and how they appear and go. Not
// collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Where a checkpoint is written until it is complete. A run that is killed may leave one behind.
std::filesystem::path unfinished(const std::filesystem::path& checkpoint);
// Also what else a killed run left of its files.
void remove_unfinished(const std::filesystem::path& output_dir);

// What is there, the one to resume first: the last of the run that started last, since an older run in the same folder
// may have got further.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& output_dir);

// Throws Error if `file`, which rank 0 has made, is not seen here.
void check_is_shared(const std::filesystem::path& file);
// Whether the checkpoint is directly in `output_dir`.
bool is_in_folder(const std::filesystem::path& checkpoint, const std::filesystem::path& output_dir);

// Whenever the process is killed, a checkpoint is complete or absent: it goes out of sight by a rename, which is quick,
// and what that returns is then deleted. One that cannot be removed is a warning.
std::filesystem::path put_aside(const std::filesystem::path& checkpoint);
void delete_folder(const std::filesystem::path& aside);
void remove_checkpoint(const std::filesystem::path& checkpoint);

// "checkpoint-93", and back: nothing if the name does not have this form.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_step(const std::string& folder_name);

// Steps of the checkpoint folders in `output_dir`, in order; none if the folder does not exist.
std::vector<std::int64_t> find_checkpoints(const std::filesystem::path& output_dir);

// Steps of the checkpoints to delete so that the limit holds, oldest first; the best and the newest stay. A limit of 0
// means no limit. The rule is transformers' (with a limit of 1, two stay if the newest is not the best), except that
// the order is by step, not by the folders' times.
std::vector<std::int64_t> checkpoints_to_delete(std::vector<std::int64_t> steps, std::optional<std::int64_t> best_step,
                                                std::int64_t save_total_limit);

}  // namespace tessera
