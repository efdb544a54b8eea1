// The experiments by name, with the nodes and GPUs that they are meant for: the rows of the tables. (no torch)
//
// Which there are is not known here: the functions of tables take a list, made from the catalogue
// (experiment/table_experiments.h) and, for experiments of no catalogue, from the runs that name them.
#pragma once

#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

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

struct Experiment {
  std::string name;  // family/path: fsdp/bloom/multi_gpu/2_gpus; its repeats have no entries of their own
  int nodes = 1, gpus_per_node = 1;
  std::string family = "";  // fsdp/bloom
  Study study = {};

  std::string folder() const { return name.substr(0, name.rfind('/')); }
  int num_gpus() const { return nodes * gpus_per_node; }
};

const Experiment* find_experiment(const std::vector<Experiment>& all, const std::string& name);  // null: there is none
// Those directly in a folder, in their order: of deepspeed/multi_gpu not those of its 2_gpus_stages_comparison. Or the
// one experiment of this name.
std::vector<const Experiment*> experiments_in(const std::vector<Experiment>& all, const std::string& folder);

// "mine/wide" of mine/wide/repeat_2; any other name as it is.
std::string without_repeat(const std::string& name);

// The list and, after it, what runs name that is not in it, with the ranks that they had.
std::vector<Experiment> with_experiments_of(const std::vector<RunRecord>& runs, std::vector<Experiment> all);

}  // namespace tessera
