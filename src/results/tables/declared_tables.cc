// Every table, each one declaration.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "results/tables/declaration.h"

namespace tessera {
namespace {

using Columns = std::vector<ColumnDeclaration>;
using enum ColumnRule;

// The workshops' headings say 'allocated' for what NVML calls used; the unit names the figure.
const std::string kUsedMB = "MB used, NVML", kUsedGB = "GB used, NVML";

const ColumnDeclaration kTotalGpus{"Total GPUs", "ranks"};
const ColumnDeclaration kOffloadColumn{.name = "Offload", .rule = kOffload};
const ColumnDeclaration kSamples{"Samples/s", "samples_per_second", kValue, ""};  // the trainer's
const ColumnDeclaration kSamplesScale{"Samples/s Scale", "samples_per_second", kScale};
const ColumnDeclaration kEvaluationSpeed{"Evaluation Speed", "eval_samples_per_second"};
const ColumnDeclaration kRuntime{"Runtime", "runtime"};
const ColumnDeclaration kTrainLoss{"Train Loss", "train_loss"};
const ColumnDeclaration kLoss{"Loss", "train_loss"};
const ColumnDeclaration kUsedMeanMB{"Memory Allocated mean", "used_mean_MB", kValue, kUsedMB};
const ColumnDeclaration kUsedPeakMB{"Memory Allocated peak", "used_peak_MB", kValue, kUsedMB};
const ColumnDeclaration kGpuMean{"GPU mean", "gpu_busy_mean_percent"};

// Of the memory logs: 'GPU 0' is the first GPU of the head node that the job used; CPU is the head node's processes.
const ColumnDeclaration kGpuPeak{"GPU 0 Peak", "gpu_log_peak_MB"};
const ColumnDeclaration kGpuAverage{"GPU 0 Avg", "gpu_log_average_MB"};
const ColumnDeclaration kGpuMode{"GPU 0 Mode", "gpu_log_mode_MB"};
const ColumnDeclaration kCpuPeak{"CPU Peak", "cpu_log_peak_MB", kValue, "MB"};  // psrecord's MB are MiB
const ColumnDeclaration kCpuAverage{"CPU Avg", "cpu_log_average_MB", kValue, "MB"};
const ColumnDeclaration kCpuMode{"CPU Mode", "cpu_log_mode_MB", kValue, "MB"};

const std::string kUsedNote =
    "Memory is what NVML says all processes use on a rank's GPU (W&B's 'GPU Memory Allocated'), not the allocator's "
    "figure; mean: over time and ranks; peak: the largest rank's; 1 GB = 2^30, 1 MB = 2^20 bytes.";
const std::string kLogNote =
    "GPU 0: the first GPU of the head node that the job used; memory used by all processes, from the GPU memory log; "
    "CPU: all processes of the job on the head node, from the CPU memory log; 1 MB = 1 MiB = 2^20 bytes.";
const std::string kScaleNote =
    "Samples/s Scale = current / baseline; Runtime Scale = baseline / current: both are above 1 if faster.";

Columns losses_and_speeds() {
  return {kTrainLoss,
          {"Eval Loss Epoch 1", "eval_loss_epoch_1"},
          {"Eval Loss Epoch 2", "eval_loss_epoch_2"},
          {"Eval Loss Last", "eval_loss"},
          {"Training Speed", "samples_per_second"},
          kEvaluationSpeed};
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
          .columns = losses_and_speeds() + Columns{{"Steps per Epoch", "updates_per_epoch"},
                                                   {"Total Steps", "total_steps"},
                                                   kUsedMeanMB,
                                                   kUsedPeakMB,
                                                   kGpuMean,
                                                   {"GPU peak", "gpu_busy_peak_percent"}},
          .notes = {kUsedNote}};
}

TableDeclaration deepspeed_baseline() {
  return {.name = "deepspeed/baseline",
          .title = "ZeRO: baseline",
          .folders = {"deepspeed/baseline"},
          .baseline = "",
          .first_column = "Setup",
          .columns = losses_and_speeds() + Columns{kGpuPeak, kGpuAverage, kGpuMode, kCpuPeak, kCpuAverage, kCpuMode},
          .notes = {kLogNote}};
}

TableDeclaration bloom_scaling(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "fsdp/bloom/baseline",
          .shows_baseline = true,
          .first_column = "Setup",
          .columns = {kTotalGpus,
                      kSamples,
                      kSamplesScale,
                      kRuntime,
                      {"Runtime Scale", "", kRuntimeScale},
                      kLoss,
                      {"GPU Memory Allocated", "used_peak_MB", kValue, kUsedGB, 2}},
          .notes = {kScaleNote, kUsedNote}};
}

TableDeclaration bloom_strategies() {
  return {.name = "fsdp/bloom/single_gpu",
          .title = "FSDP on one GPU: strategies",
          .folders = {"fsdp/bloom/single_gpu"},
          .baseline = "fsdp/bloom/baseline",
          .shows_baseline = true,
          .first_column = "Strategy",
          .columns = {kSamples, kGpuMean, kUsedPeakMB, kUsedMeanMB, {"EM", "exact_match"}, {"F1", "f1"}, kRuntime},
          .notes = {kUsedNote}};
}

TableDeclaration custom_scaling(const std::string& name, const std::string& title) {
  return {.name = name,
          .title = title,
          .folders = {name},
          .baseline = "fsdp/custom_model/single_node",
          .shows_baseline = true,
          .first_column = "Setup",
          .columns = {kTotalGpus,
                      {"Samples/s Default", "samples_per_second", kValue, ""},
                      {"Samples/s Callback", "callback_samples_per_second", kValue, ""},
                      {"Memory Default", "used_mean_MB", kValue, kUsedGB, 2},
                      {"Memory Callback", "callback_allocated_MB", kValue, "GB allocated", 2},
                      kGpuMean,
                      kLoss,
                      kRuntime},
          .notes = {"Default: the trainer's speed, and device memory (NVML, all processes). Callback: the mean of the "
                    "speeds at each log, and the allocator's memory, a mean over steps and ranks."}};
}

TableDeclaration weak_scaling() {
  return {.name = "fsdp/custom_model/weak_scaling",
          .title = "Weak scaling by layers",
          .folders = {"fsdp/custom_model/weak_scaling"},
          .baseline = "fsdp/custom_model/weak_scaling/2_gpus",
          .first_column = "Setup",
          .columns = {kTotalGpus,
                      {"Num Layers", "num_layers"},
                      {"Per-GPU Batch", "batch_size"},
                      {"Total Params", "num_parameters"},
                      kSamples,
                      {"Memory", "used_peak_MB", kValue, kUsedGB, 2},
                      kGpuMean,
                      kLoss,
                      kRuntime,
                      {"Efficiency", "", kEfficiency}},
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
          .columns = {kOffloadColumn,
                      kGpuPeak,
                      kGpuAverage,
                      {"CPU Peak", "cpu_log_peak_MB"},
                      {"CPU Avg", "cpu_log_average_MB"},
                      kSamples,
                      kRuntime},
          .notes = {kLogNote}};
}

TableDeclaration deepspeed_gpus() {
  return {.name = "deepspeed/multi_gpu",
          .title = "ZeRO-2 with offload on several GPUs",
          .folders = {"deepspeed/multi_gpu"},
          .baseline = "",
          .first_column = "Setup",
          .columns = {kRuntime,
                      {"Steps/s", "steps_per_second", kValue, ""},
                      kSamples,
                      kTrainLoss,
                      {"Eval Loss", "eval_loss"},
                      kEvaluationSpeed,
                      kGpuPeak,
                      kGpuAverage,
                      kGpuMode},
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
          .columns = {kOffloadColumn, kSamples, kTrainLoss, kGpuPeak, kGpuAverage, kGpuMode, kCpuPeak, kCpuAverage,
                      kCpuMode},
          .notes = {kLogNote}};
}

TableDeclaration deepspeed_nodes() {
  return {.name = "deepspeed/multi_node",
          .title = "ZeRO-2 with offload on several nodes",
          .folders = {"deepspeed/multi_node"},
          .baseline = "",
          .first_column = "Setup",
          .columns = {kSamples,
                      kTrainLoss,
                      {"GPU 0 Peak", "gpu_log_peak_MB", kValue, "GiB", 2},
                      {"GPU 0 Avg", "gpu_log_average_MB", kValue, "GiB"},
                      kGpuMode},
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
          .columns = {{"Train Loss", "epoch_loss"},
                      {"Train Acc", "epoch_accuracy"},
                      {"Throughput", "images_per_second"},
                      kGpuPeak,
                      kGpuAverage,
                      kGpuMode,
                      {"Throughput Scaling", "images_per_second", kScale},
                      {"Memory Avg Scaling", "gpu_log_average_MB", kScale}},
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

std::string efficiency_note(StudyKind kind) {
  switch (kind) {
    case StudyKind::kStrong:
      return "Efficiency, strong scaling: (baseline runtime / runtime) / (GPUs / baseline GPUs) x 100, for equally "
             "many "
             "rows of data.";
    case StudyKind::kWeakByData:
      return "Efficiency, weak scaling by data: baseline runtime / runtime x 100, for equally many rows of data per "
             "GPU.";
    case StudyKind::kWeakByLayers:
      return "Efficiency, weak scaling by layers: baseline runtime / runtime x 100, for equally many rows of data.";
    case StudyKind::kThroughput:
      return "Efficiency, throughput: (samples/s / baseline samples/s) / (GPUs / baseline GPUs) x 100.";
    case StudyKind::kNone:
      break;
  }
  return "";
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
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

std::optional<TableDeclaration> general_table(const std::string& name, const std::vector<Experiment>& all) {
  std::string folder = name;
  while (folder.ends_with('/')) folder.pop_back();
  std::vector<std::string> rows, baselines, notes;
  bool is_by_layers = false;
  for (const Experiment& experiment : all) {
    if (experiment.name != folder && !experiment.name.starts_with(folder + "/")) continue;
    rows.push_back(experiment.name);
    if (find_experiment(all, experiment.study.baseline) != nullptr) add_once(baselines, experiment.study.baseline);
    add_once(notes, efficiency_note(experiment.study.kind));
    is_by_layers |= experiment.study.kind == StudyKind::kWeakByLayers;
  }
  if (rows.empty()) return std::nullopt;
  for (const std::string& row : rows) add_once(baselines, row);
  notes.push_back(
      "Samples/s Scale = current / baseline. Peak Memory: allocated by torch's allocator on the rank that has most; "
      "without a GPU, the memory of its process; 1 MB = 2^20 bytes.");
  return TableDeclaration{.name = folder,
                          .title = folder,
                          .folders = std::move(baselines),
                          .baseline = "",
                          .first_column = "Experiment",
                          .columns = {{.name = "Setup", .rule = kSetup},
                                      kTotalGpus,
                                      kSamples,
                                      kSamplesScale,
                                      kRuntime,
                                      {"Efficiency", "", kStudyEfficiency},
                                      kLoss,
                                      {"Peak Memory", "peak_memory_MB", kValue, "MB"}},
                          .notes = std::move(notes),
                          .batch_rule = is_by_layers ? BatchRule::kGlobal : BatchRule::kPerGpu};
}

}  // namespace tessera
