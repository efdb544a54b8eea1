#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "experiment/import/imported_settings.h"

namespace tessera {
namespace {

class ResourceReader {
 public:
  explicit ResourceReader(ScriptFacts& script)
      : script_(script), launch_(script.launch), allocation_(script.allocation) {}

  Values read() {
    if (launch_.command.wrapper == "srun") read_srun_options();
    const int nodes = num_nodes();
    const int ranks = num_ranks_per_node(nodes);
    made_.set("nodes", std::to_string(nodes), launch_.place);
    made_.set("gpus_per_node", std::to_string(ranks), launch_.place);
    compare_gpus(ranks);
    read_cpus_and_memory();
    if (!script_.allocation.time.empty()) made_.set("time", script_.allocation.time, script_.name);
    if (!script_.allocation.job_name.empty()) made_.set("job_name", script_.allocation.job_name, script_.name);
    const std::string& log = script_.allocation.log;
    made_.set("log", log.empty() ? "log/%x-%j.out" : log, script_.name);
    return std::move(made_);
  }

 private:
  // srun may use less than sbatch has reserved.
  void read_srun_options() {
    std::vector<SbatchOption> known_ones;
    for (const SbatchOption& option : launch_.command.wrapper_options) {
      if (option.value.find_first_of("$`") == std::string::npos) known_ones.push_back(option);
    }
    for (SbatchOption& option : known_ones) option.place = launch_.place;
    Remarks unused;  // they are not worth a line each
    read_allocation(known_ones, allocation_, unused);
  }

  std::optional<int> asked_nodes() const {
    const bool has = launch_.options.contains(launch_.launcher == "torchrun" ? "nnodes" : "num_nodes");
    const bool is_alone = launch_.command.wrapper.empty() && !has && !launch_.options.contains("hostfile");
    if (launch_.options.contains("standalone")) return 1;
    if (launch_.launcher == "torchrun" && has) return launch_.count("nnodes");
    if (launch_.launcher == "deepspeed" && has) return launch_.count("num_nodes");
    if (launch_.launcher == "accelerate") return script_.accelerate.machines;
    return is_alone ? std::optional(1) : std::nullopt;
  }

  int num_nodes() {
    const int reserved = allocation_.num_nodes();
    const int nodes = asked_nodes().value_or(reserved);
    if (nodes == reserved) return nodes;
    script_.remarks.add(Remark::Kind::kTaken, launch_.shown(),
                        fmt::format("it uses {} node{} and the script reserves {}: the experiment has {}", nodes,
                                    nodes == 1 ? "" : "s", reserved, nodes));
    return nodes;
  }

  // GPUs that the program sees on a node, as far as the script says.
  std::optional<int> visible_gpus() const {
    const ShellVariables::Variable* visible = launch_.variables.find("CUDA_VISIBLE_DEVICES");
    std::string devices = visible != nullptr && visible->values[0].is_known() ? visible->values[0].text : "";
    for (const auto& [name, value] : launch_.command.variables) {
      if (name == "CUDA_VISIBLE_DEVICES" && value.is_known()) devices = value.text;
    }
    if (!devices.empty()) return static_cast<int>(split(devices, ',').size());
    const auto reserved = allocation_.num_gpus_per_node();
    return reserved && *reserved > 0 ? reserved : std::nullopt;
  }

  int num_ranks_per_node(int nodes) {
    const int gpus = visible_gpus().value_or(1);
    if (launch_.launcher == "torchrun") {
      const auto option = launch_.options.find("nproc_per_node");
      const int unnamed = option == launch_.options.end() ? 1 : gpus;  // auto, gpu, or not known
      return launch_.count("nproc_per_node").value_or(unnamed);
    }
    if (launch_.launcher == "deepspeed") return deepspeed_ranks(gpus);
    if (launch_.launcher == "accelerate") {
      return script_.accelerate.processes ? std::max(1, *script_.accelerate.processes / nodes) : gpus;
    }
    if (launch_.command.wrapper == "srun") return allocation_.num_tasks_per_node();
    if (launch_.command.wrapper == "mpirun") return mpirun_ranks(nodes, gpus);
    if (gpus > 1) {
      script_.remarks.add(
          Remark::Kind::kLeftOut, launch_.shown(),
          fmt::format(
              "one process for {} GPUs: the experiment runs one rank; start it with --gpus_per_node {} to use all",
              gpus, gpus));
    }
    return 1;
  }

  int deepspeed_ranks(int gpus) const {
    if (const auto count = launch_.count("num_gpus")) return *count;
    // --include localhost:0,1
    const auto include = launch_.options.find("include");
    if (include == launch_.options.end() || !include->second.is_known()) return gpus;
    const std::string first = split(include->second.text, '@').front();
    const std::size_t colon = first.find(':');
    return colon == std::string::npos ? gpus : static_cast<int>(split(first.substr(colon + 1), ',').size());
  }

  int mpirun_ranks(int nodes, int gpus) const {
    for (const SbatchOption& option : launch_.command.wrapper_options) {
      const auto count = option.name == "ntasks" ? slurm_count(option.value) : std::nullopt;
      if (count) return std::max(1, *count / nodes);
    }
    return gpus;
  }

  void compare_gpus(int ranks) {
    const auto reserved = script_.allocation.num_gpus_per_node();
    if (!reserved || *reserved == 0) {
      script_.remarks.add(
          Remark::Kind::kLeftOut, "GPUs",
          fmt::format("the #SBATCH lines ask for none; the experiment asks for {} per node, one per rank", ranks));
    } else if (*reserved > ranks) {
      made_.set("reserved_gpus_per_node", std::to_string(*reserved), script_.name);
    } else if (*reserved < ranks) {
      script_.remarks.add(
          Remark::Kind::kLeftOut, "GPUs",
          fmt::format("{} ranks per node start but only {} GPUs are reserved; the experiment reserves one per rank",
                      ranks, *reserved));
    }
  }

  // The catalogue's task is a whole node, as torchrun's is.
  void read_cpus_and_memory() {
    const Allocation& a = script_.allocation;
    const int tasks = a.num_tasks_per_node();
    if (a.cpus_per_task) {
      made_.set("cpus_per_task", std::to_string(*a.cpus_per_task * tasks), script_.name);
      if (tasks > 1) {
        script_.remarks.all.push_back(
            {Remark::Kind::kTaken, script_.name, "CPUs",
             fmt::format("{} tasks of {} CPUs are {} per node, which is a task of an experiment", tasks,
                         *a.cpus_per_task, *a.cpus_per_task * tasks)});
      }
    }
    std::optional<long long> megabytes = a.megabytes;
    if (!megabytes && a.megabytes_per_cpu) megabytes = *a.megabytes_per_cpu * a.cpus_per_task.value_or(1) * tasks;
    if (!megabytes && a.megabytes_per_gpu) megabytes = *a.megabytes_per_gpu * a.num_gpus_per_node().value_or(1);
    if (megabytes) made_.set("memory", megabytes_text(*megabytes), script_.name);
  }

  ScriptFacts& script_;
  const LaunchLine& launch_;
  Allocation allocation_;
  Values made_;
};

}  // namespace

Values imported_resources(ScriptFacts& script) {
  return ResourceReader(script).read();
}

}  // namespace tessera
