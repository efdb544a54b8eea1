// The columns that tables are made of, each with its unit and its formula from a run's record. (no torch)
#pragma once

#include "results/tables/declaration.h"

namespace tessera::columns {

// What was run.
ColumnDeclaration setup();  // "1 node x 2 GPUs"
ColumnDeclaration total_gpus();
ColumnDeclaration offload();  // "no", "yes", "pinned"
ColumnDeclaration num_layers();
ColumnDeclaration batch_per_gpu();
ColumnDeclaration num_parameters();
ColumnDeclaration steps_per_epoch();
ColumnDeclaration total_steps();

// How fast it was.
ColumnDeclaration samples_per_second(const std::string& name = "Samples/s");  // the trainer's
ColumnDeclaration callback_samples_per_second();
ColumnDeclaration samples_scale();  // current / baseline
ColumnDeclaration steps_per_second();
ColumnDeclaration eval_samples_per_second();
ColumnDeclaration runtime();
ColumnDeclaration runtime_scale();     // baseline / current, for equally much data
ColumnDeclaration efficiency();        // baseline / current x 100, for equally much data
ColumnDeclaration study_efficiency();  // as the row's study defines it: 100 % is perfect
ColumnDeclaration throughput();        // images/s of the last epoch
ColumnDeclaration throughput_scale();

// What it learned.
ColumnDeclaration train_loss(const std::string& name = "Train Loss");  // the run's final train_loss
ColumnDeclaration any_train_loss();                                    // the same, or of images that of the last epoch
ColumnDeclaration eval_loss(int epoch);
ColumnDeclaration last_eval_loss(const std::string& name = "Eval Loss");
ColumnDeclaration epoch_loss();      // images: of the last epoch
ColumnDeclaration epoch_accuracy();  // images: of the last epoch
ColumnDeclaration exact_match();
ColumnDeclaration f1();

// What it used. 'Device' is NVML's figure over all ranks, 'callback' the allocator's.
ColumnDeclaration device_memory_mean_MB();
ColumnDeclaration device_memory_peak_MB();
ColumnDeclaration device_memory_mean_GB(const std::string& name);
ColumnDeclaration device_memory_peak_GB(const std::string& name);
ColumnDeclaration callback_memory_GB();
ColumnDeclaration peak_memory_MB();  // the allocator's on a GPU, else of the process
ColumnDeclaration gpu_percent();
ColumnDeclaration gpu_percent_peak();

// Of the memory logs: 'GPU 0' is the first GPU of the head node that the job used; CPU is the head node's processes.
ColumnDeclaration gpu_peak(const std::string& unit = "MiB");  // or "GiB"
ColumnDeclaration gpu_average(const std::string& unit = "MiB");
ColumnDeclaration gpu_mode();
ColumnDeclaration gpu_average_scale();                       // current / baseline
ColumnDeclaration cpu_peak(const std::string& unit = "MB");  // psrecord's MB are MiB
ColumnDeclaration cpu_average(const std::string& unit = "MB");
ColumnDeclaration cpu_mode();

}  // namespace tessera::columns
