// Values of sbatch's options in all forms that Slurm takes. Each gives nothing for a text of another form. (no torch)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// Any of slurm_seconds() -> "HH:MM:SS", with "D-" before it from a day on.
std::optional<std::string> slurm_time(std::string_view text);

// "64G", "64000" (megabytes), "0" (all) -> megabytes, rounded up.
std::optional<long long> slurm_megabytes(std::string_view text);
std::string megabytes_text(long long megabytes);  // 65536 -> "64G", 64000 -> "64000M", 0 -> "0"

// "2", "2-4" (the least).
std::optional<int> slurm_count(std::string_view text);

// Of --gpus, --gpus-per-node, ...: "4", "a100:4", "a100:2,v100:2". Of --gres: "gpu:4", "gpu:a100:4", "gpu", and others
// beside it ("gpu:4,nvme:1").
std::optional<int> slurm_gpus(std::string_view text);
std::optional<int> slurm_gres_gpus(std::string_view text);

}  // namespace tessera
