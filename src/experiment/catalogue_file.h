// One file of the catalogue: a family of experiments, each with what it inherits from the levels around it. (no torch)
//
//   {
//     "tessera_experiments": 1,                  // the version of this form
//     "family": "deepspeed",                     // names are family/path
//     "job": "bloom-qa",
//     "settings":    {"learning_rate": 5e-5},    // of `tessera train`
//     "environment": {"OMP_NUM_THREADS": 1},     // exported before the run
//     "resources":   {"nodes": 1, "gpus_per_node": 1, "cpus_per_task": 4, "memory": "32G", "time": "01:00:00"},
//     "presets":     {"code": {"settings": {...}}},          // what --preset code changes at this level
//     "experiments": {
//       "baseline":  {"resources": {"job_name": "DS-BASE"}},
//       "multi_gpu": {"settings": {...}, "experiments": {"2_gpus": {...}}}   // a group: a level of its own
//     }
//   }
//
// A level overlays the one around it name by name; null takes a name away. docs/experiments.md has the whole form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiments.h"
#include "experiment/values.h"

namespace tessera {

inline constexpr int kCatalogueFormat = 1;

struct ExperimentSpec {
  std::string name;    // family/path
  std::string family;  // ddp, fsdp/bloom, fsdp/custom_model, deepspeed or a user's own
  std::string file;    // that declares it, for messages
  std::string about, job;
  Values settings, environment, resources, gate;
  Study study;
  int repeat = 0;  // 1, 2, ... of an experiment that is repeated; 0: it is not
};

// Names of "resources" and "gate", in the order in which they are shown.
const std::vector<std::string>& resource_names();
const std::vector<std::string>& gate_names();

// All experiments of the file in its order, as `preset` makes them, with sweeps and repeats expanded. A level without
// that preset stays as it is. Comments (// and /* */) are allowed. Throws UsageError with place and reason.
std::vector<ExperimentSpec> read_catalogue_file(std::string_view text, const std::string& origin,
                                                const std::string& preset);
// Those that --preset may name; "guide" first.
std::vector<std::string> presets_of(std::string_view text, const std::string& origin);

}  // namespace tessera
