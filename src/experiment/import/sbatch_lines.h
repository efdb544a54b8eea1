// The #SBATCH lines of a script: what it asks Slurm for. (no torch)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/import/remarks.h"

namespace tessera {

struct SbatchOption {
  std::string name;        // the long one, with hyphens: "cpus-per-task"
  std::string value;       // empty: an option without one
  std::string place = {};  // "train.sbatch:3"
};

// Both forms (-N 2, -N2, --nodes=2, --nodes 2), up to the first command, where sbatch stops too; a remark on each that
// comes later. Throws UsageError for a line that holds no options.
std::vector<SbatchOption> read_sbatch_lines(std::string_view text, const std::string& origin, Remarks& remarks);
bool has_sbatch_lines(std::string_view text);

// Options in the words of srun and sbatch, from words[at] on, up to the first word that is none; `at` moves there.
std::vector<SbatchOption> take_slurm_options(const std::vector<std::string>& words, std::size_t& at);

// What a job gets, as far as the options say.
struct Allocation {
  std::optional<int> nodes, tasks, tasks_per_node, cpus_per_task, gpus_per_node, gpus_per_task, gpus;
  std::optional<long long> megabytes, megabytes_per_cpu, megabytes_per_gpu;
  std::string job_name, time, log;

  int num_nodes() const { return nodes.value_or(1); }
  int num_tasks_per_node() const;
  std::optional<int> num_gpus_per_node() const;  // none: the options ask for no GPUs
};

// Adds the options to `allocation`, with a remark on each. Throws UsageError for a value that Slurm would refuse.
void read_allocation(const std::vector<SbatchOption>& options, Allocation& allocation, Remarks& remarks);

// Values of such options in all forms that Slurm takes. Each gives nothing for a text of another form.
//
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
