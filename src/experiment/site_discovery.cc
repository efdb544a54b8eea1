#include "experiment/site_discovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/command_output.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::chrono::seconds kPatienceWithSinfo{30};

// "gpu:a100:4(S:0-1),lustre:1", "gpu:8", "(null)"
void read_gres(const std::string& text, Partition& partition) {
  for (const std::string& entry : split(text, ',')) {
    const std::vector<std::string> parts = split(entry.substr(0, entry.find('(')), ':');
    if (parts.size() < 2 || parts[0] != "gpu") continue;
    partition.gpus_per_node += static_cast<int>(parse_integer(parts.back()).value_or(0));
    if (parts.size() > 2) partition.gpu_type = parts[1];
  }
}

}  // namespace

std::vector<Partition> parse_sinfo(const std::string& text) {
  std::vector<Partition> partitions;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (parts.size() < 5) continue;
    Partition partition;
    partition.name = parts[0];
    partition.is_default = partition.name.ends_with('*');
    if (partition.is_default) partition.name.pop_back();
    read_gres(parts[1], partition);
    if (parts[2] != "(null)") partition.features = split(parts[2], ',');
    partition.cpus_per_node = static_cast<int>(parse_integer(parts[3].substr(0, parts[3].find('+'))).value_or(0));
    partition.num_nodes = static_cast<int>(parse_integer(parts[4]).value_or(0));
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

const Partition* choose_partition(const std::vector<Partition>& partitions) {
  const auto worth = [](const Partition& each) {
    return std::tuple(each.gpus_per_node > 0, each.is_default, each.num_nodes);
  };
  const auto best = std::max_element(partitions.begin(), partitions.end(),
                                     [&](const Partition& a, const Partition& b) { return worth(a) < worth(b); });
  return best == partitions.end() ? nullptr : &*best;
}

std::string first_site_text(const std::vector<Partition>& partitions) {
  std::vector<std::string> names;
  for (const Partition& each : partitions) {
    names.push_back(fmt::format("{} ({} nodes, {} GPUs each)", each.name, each.num_nodes, each.gpus_per_node));
  }
  const Partition* chosen = choose_partition(partitions);
  std::string text =
      "// What this cluster needs that an experiment does not know. docs/slurm.md explains every name.\n{\n"
      "  \"tessera_site\": 1,\n";
  if (chosen != nullptr) {
    text += fmt::format("  // sinfo shows: {}.\n  \"partition\": {},\n", join(names, ", "), Json(chosen->name).dump());
    text += fmt::format(
        "  // GPUs of a node; an experiment that needs more is refused. 0: unknown.\n"
        "  \"gpus_per_node\": {},\n",
        chosen->gpus_per_node);
    if (!chosen->features.empty()) {
      text += fmt::format(
          "  // Nodes of one kind make runs comparable. This partition's features: {}.\n"
          "  // \"constraint\": {},\n",
          join(chosen->features, ", "), Json(chosen->features[0]).dump());
    }
  }
  return text +
         "  // Who pays, if your cluster asks for it.\n  // \"account\": \"...\",\n"
         "  // Modules that the program needs.\n  // \"modules\": [],\n"
         "  // The network between nodes: `ip -br addr` on a compute node shows the names.\n  // \"interface\": "
         "\"ib0\",\n"
         "  // Variables of every run.\n  // \"environment\": {\"NCCL_IB_HCA\": \"mlx5\"},\n"
         "  // Further lines for sbatch.\n  // \"sbatch\": [\"--mail-type=END\"],\n"
         "  // How srun starts ranks; CPU ranks need PMIx.\n  \"srun\": [\"--mpi=pmix\"],\n"
         "  // Where your data and models are, by job.\n"
         "  \"settings\": {\n"
         "    // \"bloom-qa\": {\"train_file\": \"/data/squad/train-v1.1.json\", \"validation_file\": "
         "\"/data/squad/dev-v1.1.json\"},\n"
         "    // \"resnet-tinyimagenet\": {\"data_dir\": \"/data/tiny-imagenet-200\"}\n"
         "  }\n}\n";
}

std::string discovered_site_text() {
  return first_site_text(parse_sinfo(successful_output({"sinfo", "-h", "-o", "%P|%G|%f|%c|%D"}, kPatienceWithSinfo)));
}

}  // namespace tessera
