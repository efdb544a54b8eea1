#include "report/tables/experiments.h"

#include <fmt/format.h>

namespace tessera {
namespace {

class ExperimentList {
 public:
  void add(const std::string& name, int nodes, int gpus_per_node) { all_.push_back({name, nodes, gpus_per_node}); }
  void add_stages(const std::string& folder, std::initializer_list<int> stages, int gpus) {
    for (const int stage : stages) add(fmt::format("{}/zero_{}", folder, stage), 1, gpus);
  }
  void add_gpus(const std::string& folder, std::initializer_list<int> counts) {
    for (const int gpus : counts) add(fmt::format("{}/{}_gpus", folder, gpus), 1, gpus);
  }
  void add_nodes(const std::string& folder, std::initializer_list<int> counts, int gpus_per_node) {
    for (const int nodes : counts) add(fmt::format("{}/{}_nodes", folder, nodes), nodes, gpus_per_node);
  }
  std::vector<Experiment> take() { return std::move(all_); }

 private:
  std::vector<Experiment> all_;
};

std::vector<Experiment> make_experiments() {
  ExperimentList list;
  list.add("ddp/baseline", 1, 1);
  list.add_gpus("ddp/multi_gpu", {2, 4, 8});
  list.add_nodes("ddp/multi_node", {2, 4, 8}, 2);

  list.add("fsdp/bloom/baseline", 1, 1);
  for (const char* strategy : {"full_shard", "shard_grad_op", "hybrid_shard", "full_shard_offload"}) {
    list.add(fmt::format("fsdp/bloom/single_gpu/{}", strategy), 1, 1);
  }
  list.add_gpus("fsdp/bloom/multi_gpu", {2, 4, 8});
  list.add_nodes("fsdp/bloom/multi_node", {2, 4, 8}, 1);

  list.add("fsdp/custom_model/single_node", 1, 1);
  list.add_gpus("fsdp/custom_model/multi_gpu", {2, 4, 8});
  list.add_nodes("fsdp/custom_model/multi_node", {2, 4, 8}, 1);
  list.add_gpus("fsdp/custom_model/weak_scaling", {2, 4, 8});
  list.add("fsdp/custom_model/weak_scaling/16_gpus", 2, 8);

  list.add("deepspeed/baseline", 1, 1);
  list.add_stages("deepspeed/single_gpu", {0, 1, 2, 3}, 1);
  list.add_stages("deepspeed/single_gpu/cpu_offloading", {1, 2, 3}, 1);
  list.add_stages("deepspeed/single_gpu/cpu_offloading/pinned_memory", {1, 2, 3}, 1);
  list.add_gpus("deepspeed/multi_gpu", {2, 4, 6, 8});
  list.add_stages("deepspeed/multi_gpu/2_gpus_stages_comparison", {1, 2, 3}, 2);
  list.add_stages("deepspeed/multi_gpu/2_gpus_stages_comparison/cpu_offloading", {1, 2, 3}, 2);
  list.add_nodes("deepspeed/multi_node", {2, 3, 4, 6, 8}, 2);
  return list.take();
}

}  // namespace

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = make_experiments();
  return all;
}

const Experiment* find_experiment(const std::string& name) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

std::vector<const Experiment*> experiments_in(const std::string& folder) {
  if (const Experiment* one = find_experiment(folder)) return {one};
  std::vector<const Experiment*> children;
  for (const Experiment& experiment : experiments()) {
    if (experiment.folder() == folder) children.push_back(&experiment);
  }
  return children;
}

}  // namespace tessera
