#include "experiment/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/command_output.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// They become lines of a script.
std::string one_line(const JsonReader& value) {
  std::string text = value.as_text();
  if (text.find_first_of("\n\r") != std::string::npos) value.refuse("expected one line");
  return text;
}

Values values_of(const JsonReader& object, const std::string& origin) {
  Values values;
  for (const auto& [name, value] : object.members()) values.set(name, text_of(value), origin);
  return values;
}

constexpr std::chrono::seconds kPatienceWithSinfo{30};

// "gpu:a100:4(S:0-1),lustre:1", "gpu:8", "(null)"
void read_gres(const std::string& text, Partition& partition) {
  for (const std::string& entry : split(text, ',')) {
    const std::vector<std::string> parts = split(entry.substr(0, entry.find('(')), ':');
    if (parts.size() < 2 || parts[0] != "gpu") continue;
    partition.gpus_per_node += static_cast<int>(parse_integer(parts.back()).value_or(0));
  }
}

}  // namespace

Values Site::settings_of(const std::string& job) const {
  Values values;
  for (const std::string& part : {std::string("all"), job}) {
    const auto found = settings.find(part);
    if (found != settings.end()) values.overlay(found->second);
  }
  return values;
}

fs::path own_site_file(const Environment& environment) {
  const auto folder = config_folder(environment);
  if (!folder) throw UsageError("HOME is not set: name the site file by --site");
  return *folder / "site.json";
}

std::optional<fs::path> site_file(const std::string& named, const Environment& environment) {
  if (!named.empty()) return named;
  if (const auto variable = environment.find("TESSERA_SITE")) return *variable;
  if (!config_folder(environment)) return std::nullopt;
  const fs::path file = own_site_file(environment);
  std::error_code none;
  return fs::exists(file, none) ? std::optional(file) : std::nullopt;
}

Site parse_site(const std::string& text, const std::string& origin) {
  const JsonText json(text, origin, JsonComments::kAllowed);
  const JsonReader root = json.root();
  const auto version = root.find("tessera_site");
  if (!version || version->json() != 1) refuse_file(origin, "no site file: \"tessera_site\": 1 is missing");
  Site site;
  site.file = origin;
  const std::map<std::string, std::string*> texts = {
      {"partition", &site.partition},   {"account", &site.account},
      {"constraint", &site.constraint}, {"qos", &site.qos},
      {"interface", &site.interface},   {"reservation", &site.reservation},
      {"prefix", &site.prefix}};
  const std::map<std::string, std::vector<std::string>*> lists = {
      {"modules", &site.modules}, {"sbatch", &site.sbatch}, {"srun", &site.srun}};
  const std::map<std::string, Values*> variables = {{"environment", &site.environment},
                                                    {"gate_environment", &site.gate_environment}};
  std::vector<std::string> known = {"tessera_site", "gpus_per_node", "settings"};
  const auto read = [&](const auto& places, const auto& value_of) {
    for (const auto& [name, place] : places) {
      known.push_back(name);
      if (const auto value = root.find(name)) *place = value_of(*value);
    }
  };
  read(texts, one_line);
  read(lists, [](const JsonReader& list) {
    std::vector<std::string> lines;
    for (const JsonReader& line : list.items()) lines.push_back(one_line(line));
    return lines;
  });
  read(variables, [&](const JsonReader& object) {
    for (const auto& [name, value] : object.members()) {
      if (!is_variable_name(name)) value.refuse_key("this is no name of a variable");
    }
    return values_of(object, origin);
  });
  root.allow_only(known);
  for (std::string& line : site.sbatch) {
    if (line.starts_with("#SBATCH ")) line = trim(line.substr(8));
  }
  site.gpus_per_node = static_cast<int>(root.integer("gpus_per_node", 0, std::numeric_limits<int>::max(), 0));
  if (const auto settings = root.find("settings")) {
    for (const auto& [job, values] : settings->members()) site.settings[job] = values_of(values, origin);
  }
  return site;
}

Site read_site(const std::string& named, const Environment& environment) {
  const auto file = site_file(named, environment);
  return file ? parse_site(read_file(*file), file->string()) : Site();
}

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
