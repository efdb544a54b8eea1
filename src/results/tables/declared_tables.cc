// Every table, each one declaration.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "results/tables/columns.h"
#include "results/tables/declaration.h"
#include "results/tables/general_table.h"

namespace tessera {
namespace {

using Columns = std::vector<ColumnDeclaration>;

const std::string kUsedNote =
    "Memory is what NVML says all processes use on a rank's GPU (W&B's 'GPU Memory Allocated'), not the allocator's "
    "figure; mean: over time and ranks; peak: the largest rank's; 1 GB = 2^30, 1 MB = 2^20 bytes.";
const std::string kLogNote =
    "GPU 0: the first GPU of the head node that the job used; memory used by all processes, from the GPU memory log; "
    "CPU: all processes of the job on the head node, from the CPU memory log; 1 MB = 1 MiB = 2^20 bytes.";
const std::string kScaleNote =
    "Samples/s Scale = current / baseline; Runtime Scale = baseline / current: both are above 1 if faster.";

Columns losses_and_speeds() {
  return {columns::train_loss(),
          columns::eval_loss(1),
          columns::eval_loss(2),
          columns::last_eval_loss("Eval Loss Last"),
          columns::samples_per_second("Training Speed"),
          columns::eval_samples_per_second()};
}

Columns operator+(Columns first, const Columns& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TableDeclaration baseline_table(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "",
          .first_column = "Setup",
          .columns = losses_and_speeds() + Columns{columns::steps_per_epoch(), columns::total_steps(),
                                                   columns::device_memory_mean_MB(), columns::device_memory_peak_MB(),
                                                   columns::gpu_percent(), columns::gpu_percent_peak()},
          .notes = {kUsedNote}};
}

TableDeclaration deepspeed_baseline() {
  return {.name = "deepspeed/baseline",
          .title = "ZeRO: baseline",
          .folders = {"deepspeed/baseline"},
          .baseline = "",
          .first_column = "Setup",
          .columns = losses_and_speeds() + Columns{columns::gpu_peak(), columns::gpu_average(), columns::gpu_mode(),
                                                   columns::cpu_peak(), columns::cpu_average(), columns::cpu_mode()},
          .notes = {kLogNote}};
}

TableDeclaration bloom_scaling(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "fsdp/bloom/baseline",
          .shows_baseline = true,
          .first_column = "Setup",
          .columns = {columns::total_gpus(), columns::samples_per_second(), columns::samples_scale(),
                      columns::runtime(), columns::runtime_scale(), columns::train_loss("Loss"),
                      columns::device_memory_peak_GB("GPU Memory Allocated")},
          .notes = {kScaleNote, kUsedNote}};
}

TableDeclaration bloom_strategies() {
  return {.name = "fsdp/bloom/single_gpu",
          .title = "FSDP on one GPU: strategies",
          .folders = {"fsdp/bloom/single_gpu"},
          .baseline = "fsdp/bloom/baseline",
          .shows_baseline = true,
          .first_column = "Strategy",
          .columns = {columns::samples_per_second(), columns::gpu_percent(), columns::device_memory_peak_MB(),
                      columns::device_memory_mean_MB(), columns::exact_match(), columns::f1(), columns::runtime()},
          .notes = {kUsedNote}};
}

TableDeclaration custom_scaling(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "fsdp/custom_model/single_node",
          .shows_baseline = true,
          .first_column = "Setup",
          .columns = {columns::total_gpus(), columns::samples_per_second("Samples/s Default"),
                      columns::callback_samples_per_second(), columns::device_memory_mean_GB("Memory Default"),
                      columns::callback_memory_GB(), columns::gpu_percent(), columns::train_loss("Loss"),
                      columns::runtime()},
          .notes = {"Default: the trainer's speed, and device memory (NVML, all processes). Callback: the mean of the "
                    "speeds at each log, and the allocator's memory, a mean over steps and ranks."}};
}

TableDeclaration weak_scaling() {
  return {.name = "fsdp/custom_model/weak_scaling",
          .title = "Weak scaling by layers",
          .folders = {"fsdp/custom_model/weak_scaling"},
          .baseline = "fsdp/custom_model/weak_scaling/2_gpus",
          .first_column = "Setup",
          .columns = {columns::total_gpus(), columns::num_layers(), columns::batch_per_gpu(), columns::num_parameters(),
                      columns::samples_per_second(), columns::device_memory_peak_GB("Memory"), columns::gpu_percent(),
                      columns::train_loss("Loss"), columns::runtime(), columns::efficiency()},
          .notes = {"Efficiency = baseline runtime / current runtime x 100: 100 % is perfect, less is worse. The "
                    "workshop prints the inverse, current / baseline x 100.",
                    "Layers double from row to row, parameters do not: the embeddings stay.", kUsedNote},
          .batch_rule = BatchRule::kGlobal};
}

TableDeclaration deepspeed_stages(const std::string& name, const std::string& title, std::vector<std::string> folders) {
  return {.name = name,
          .title = title,
          .folders = std::move(folders),
          .baseline = "",
          .first_column = "Stage",
          .columns = {columns::offload(), columns::gpu_peak(), columns::gpu_average(), columns::cpu_peak("MiB"),
                      columns::cpu_average("MiB"), columns::samples_per_second(), columns::runtime()},
          .notes = {kLogNote}};
}

TableDeclaration deepspeed_gpus() {
  return {.name = "deepspeed/multi_gpu",
          .title = "ZeRO-2 with offload on several GPUs",
          .folders = {"deepspeed/multi_gpu"},
          .baseline = "",
          .first_column = "Setup",
          .columns = {columns::runtime(), columns::steps_per_second(), columns::samples_per_second(),
                      columns::train_loss(), columns::last_eval_loss(), columns::eval_samples_per_second(),
                      columns::gpu_peak(), columns::gpu_average(), columns::gpu_mode()},
          .notes = {"Samples/s is the trainer's; the guide's formula forgets accumulation.",
                    "Rows grow with the GPUs: runtimes are not a speed-up.", kLogNote},
          .is_transposed = true};
}

TableDeclaration deepspeed_two_gpu_stages(const std::string& name, std::vector<std::string> folders) {
  return {.name = name,
          .title = "ZeRO stages on 2 GPUs",
          .folders = std::move(folders),
          .baseline = "",
          .first_column = "Stage",
          .columns = {columns::offload(), columns::samples_per_second(), columns::train_loss(), columns::gpu_peak(),
                      columns::gpu_average(), columns::gpu_mode(), columns::cpu_peak(), columns::cpu_average(),
                      columns::cpu_mode()},
          .notes = {kLogNote}};
}

TableDeclaration deepspeed_nodes() {
  return {.name = "deepspeed/multi_node",
          .title = "ZeRO-2 with offload on several nodes",
          .folders = {"deepspeed/multi_node"},
          .baseline = "",
          .first_column = "Setup",
          .columns = {columns::samples_per_second(), columns::train_loss(), columns::gpu_peak("GiB"),
                      columns::gpu_average("GiB"), columns::gpu_mode()},
          .notes = {kLogNote},
          .lists_hosts = true};
}

TableDeclaration ddp_scaling(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "ddp/baseline",
          .shows_baseline = true,
          .first_column = "Setup",
          .columns = {columns::epoch_loss(), columns::epoch_accuracy(), columns::throughput(), columns::gpu_peak(),
                      columns::gpu_average(), columns::gpu_mode(), columns::throughput_scale(),
                      columns::gpu_average_scale()},
          .notes = {"Loss, accuracy and throughput are those of the last epoch; both scalings = current / baseline.",
                    kLogNote}};
}

std::vector<TableDeclaration> declare_tables() {
  const std::string single = "deepspeed/single_gpu", offloading = single + "/cpu_offloading",
                    pinned = offloading + "/pinned_memory", stages = "deepspeed/multi_gpu/2_gpus_stages_comparison";
  return {ddp_scaling("ddp/multi_gpu", "DDP on several GPUs"),
          ddp_scaling("ddp/multi_node", "DDP on several nodes"),
          baseline_table("fsdp/bloom/baseline", "FSDP, BLOOM: baseline"),
          bloom_strategies(),
          bloom_scaling("fsdp/bloom/multi_gpu", "FSDP, BLOOM on several GPUs"),
          bloom_scaling("fsdp/bloom/multi_node", "FSDP, BLOOM on several nodes"),
          baseline_table("fsdp/custom_model/single_node", "FSDP, custom model: one GPU"),
          custom_scaling("fsdp/custom_model/multi_gpu", "FSDP, custom model on several GPUs"),
          custom_scaling("fsdp/custom_model/multi_node", "FSDP, custom model on several nodes"),
          weak_scaling(),
          deepspeed_baseline(),
          deepspeed_stages(single, "ZeRO on one GPU, with and without offload", {single, offloading, pinned}),
          deepspeed_stages(offloading, "ZeRO on one GPU with offload", {offloading}),
          deepspeed_stages(pinned, "ZeRO on one GPU with offload to pinned memory", {pinned}),
          deepspeed_gpus(),
          deepspeed_two_gpu_stages(stages, {stages, stages + "/cpu_offloading"}),
          deepspeed_two_gpu_stages(stages + "/cpu_offloading", {stages + "/cpu_offloading"}),
          deepspeed_nodes()};
}

}  // namespace

const std::vector<TableDeclaration>& declared_tables() {
  static const std::vector<TableDeclaration> all = declare_tables();
  return all;
}

bool is_in_declared_table(const Experiment& experiment) {
  const std::vector<TableDeclaration>& all = declared_tables();
  return std::any_of(all.begin(), all.end(), [&](const TableDeclaration& table) {
    const auto names_it = [&](const std::string& folder) {
      return folder == experiment.name || folder == experiment.folder();
    };
    return table.baseline == experiment.name || std::any_of(table.folders.begin(), table.folders.end(), names_it);
  });
}

TableDeclaration find_table(const std::string& name, const std::vector<Experiment>& experiments) {
  std::vector<std::string> names;
  for (const TableDeclaration& table : declared_tables()) {
    if (table.name == name || table.name + "/" == name) return table;
    names.push_back(table.name);
  }
  if (std::optional<TableDeclaration> general = general_table(name, experiments)) return *std::move(general);
  for (const Experiment& experiment : experiments) {
    if (!is_in_declared_table(experiment) && std::find(names.begin(), names.end(), experiment.family) == names.end())
      names.push_back(experiment.family);
  }
  const std::optional<std::string> meant = nearest(name, names);
  throw UsageError(fmt::format("no table '{}'{}; tables: {}", name,
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(names, ", ")));
}

}  // namespace tessera
