// Which checkpoints to delete so that save_total_limit holds. The best one and the newest one always stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// "checkpoint-93", and back: nothing if the name does not have this form.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> checkpoint_step(const std::string& folder_name);

// Steps of the checkpoint folders in `output_dir`, in order; none if the folder does not exist.
std::vector<std::int64_t> find_checkpoints(const std::filesystem::path& output_dir);

// Steps of the checkpoints to delete, oldest first. A limit of 0 means no limit. The rule is transformers' (with a
// limit of 1, two stay if the newest is not the best), except that the order is by step, not by the folders' times.
std::vector<std::int64_t> checkpoints_to_delete(std::vector<std::int64_t> steps, std::optional<std::int64_t> best_step,
                                                std::int64_t save_total_limit);

}  // namespace tessera
