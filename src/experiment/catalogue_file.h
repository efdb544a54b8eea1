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
// "tables", "table_notes" and "models" stand beside "experiments": table_spec.h.
//
// A level overlays the one around it name by name; null takes a name away. docs/experiments.md has the whole form.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/table_spec.h"
#include "experiment/values.h"

namespace tessera {

inline constexpr int kCatalogueFormat = 1;

// What a scaling study holds constant, and so what its efficiency is.
enum class StudyKind {
  kNone,
  kStrong,        // the same rows: runtime should shrink with GPUs
  kWeakByData,    // rows per GPU: runtime should stay
  kWeakByLayers,  // layers per GPU: runtime should stay
  kThroughput,    // samples/s alone are compared
};

struct Study {
  StudyKind kind = StudyKind::kNone;
  std::string baseline;  // an experiment's full name
};

struct ExperimentSpec {
  std::string name;    // family/path
  std::string family;  // ddp, fsdp/bloom, fsdp/custom_model, deepspeed or a user's own
  std::string file;    // that declares it, for messages
  std::string about, job;
  Values settings, environment, resources, gate;
  Study study;
  int repeat = 0;  // 1, 2, ... of an experiment that is repeated; 0: it is not

  std::string folder() const { return name.substr(0, name.rfind('/')); }
  // Throw UsageError if they are no numbers.
  int nodes() const { return resources.count("nodes", 1); }
  int gpus_per_node() const { return resources.count("gpus_per_node", 1); }
  int num_gpus() const { return nodes() * gpus_per_node(); }
};

inline constexpr std::pair<const char*, Values ExperimentSpec::*> kValueSections[] = {
    {"settings", &ExperimentSpec::settings},
    {"environment", &ExperimentSpec::environment},
    {"resources", &ExperimentSpec::resources},
    {"gate", &ExperimentSpec::gate}};

// Names of "resources", in the order in which they are shown.
const std::vector<std::string>& resource_names();

struct CatalogueFile {
  std::vector<ExperimentSpec> experiments;  // in the file's order, with sweeps and repeats expanded
  std::vector<TableSpec> tables;
  std::vector<ModelSize> models;
  std::vector<std::string> presets = {"guide"};  // those that --preset may name
};

// Experiments are as `preset` makes them; a level without that preset stays as it is. Comments (// and /* */) are
// allowed. Throws UsageError with place and reason.
CatalogueFile read_catalogue_file(std::string_view text, const std::string& origin, const std::string& preset);

}  // namespace tessera
