#include "experiment/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/command_output.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "experiment/values.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class SiteReader {
 public:
  SiteReader(const Json& root, const std::string& origin) : root_(root), origin_(origin) { site_.file = origin; }

  Site read() {
    const auto version = root_.find("tessera_site");
    if (version == root_.end() || *version != 1) refuse_file(origin_, "no site file: \"tessera_site\": 1 is missing");
    for (const auto& [name, value] : root_.items()) take(name, value);
    return std::move(site_);
  }

 private:
  void take(const std::string& name, const Json& value) {
    const std::map<std::string, std::string*> texts = {{"partition", &site_.partition},
                                                       {"account", &site_.account},
                                                       {"constraint", &site_.constraint},
                                                       {"reservation", &site_.reservation},
                                                       {"qos", &site_.qos},
                                                       {"interface", &site_.interface},
                                                       {"prefix", &site_.prefix}};
    const std::map<std::string, std::vector<std::string>*> lists = {
        {"modules", &site_.modules}, {"sbatch", &site_.sbatch}, {"srun", &site_.srun}};
    const std::map<std::string, Values*> values = {{"environment", &site_.environment},
                                                   {"gate_environment", &site_.gate_environment}};
    if (name == "tessera_site") return;
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = text_value(name, value);
    } else if (const auto list = lists.find(name); list != lists.end()) {
      *list->second = list_value(name, value);
      for (std::string& line : site_.sbatch) {
        if (line.starts_with("#SBATCH ")) line = trim(line.substr(8));
      }
    } else if (const auto into = values.find(name); into != values.end()) {
      take_values(name, value, *into->second);
    } else if (name == "gpus_per_node") {
      if (!value.is_number_unsigned()) refuse(name, "expected a whole number of at least 0");
      site_.gpus_per_node = value.get<int>();
    } else if (name == "settings") {
      take_settings(value);
    } else {
      refuse_unknown_name(name, texts, lists, values);
    }
  }

  template <typename... Maps>
  void refuse_unknown_name(const std::string& name, const Maps&... maps) const {
    std::vector<std::string> known = {"gpus_per_node", "settings"};
    (std::for_each(maps.begin(), maps.end(), [&](const auto& entry) { known.push_back(entry.first); }), ...);
    const auto meant = nearest(name, known);
    refuse_file(origin_, fmt::format("unknown name '{}'{}; known: {}", printable(name, 40),
                                     meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(known, ", ")));
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& mistake) const {
    throw UsageError(fmt::format("{}: {}: {}", origin_, name, mistake));
  }

  // One line: they become lines of a script.
  std::string text_value(const std::string& name, const Json& value) const {
    if (!value.is_string()) refuse(name, "expected a text");
    std::string text = value.get<std::string>();
    if (text.find_first_of("\n\r") != std::string::npos) refuse(name, "expected one line");
    return text;
  }

  std::vector<std::string> list_value(const std::string& name, const Json& value) const {
    if (!value.is_array()) refuse(name, "expected a list of texts: [\"...\"]");
    std::vector<std::string> list;
    for (const Json& each : value) list.push_back(text_value(name, each));
    return list;
  }

  void take_values(const std::string& name, const Json& value, Values& into) const {
    if (!value.is_object()) refuse(name, "expected an object: {\"NAME\": value}");
    for (const auto& [variable, each] : value.items()) {
      if (!is_variable_name(variable))
        refuse(name, fmt::format("'{}' is no name of a variable", printable(variable, 40)));
      into.set(variable, text_of(each), origin_);
    }
  }

  void take_settings(const Json& value) {
    const char* form = "expected {\"all\": {...}, \"JOB\": {...}}";
    if (!value.is_object()) refuse("settings", form);
    for (const auto& [job, settings] : value.items()) {
      if (!settings.is_object()) refuse("settings: " + printable(job, 40), form);
    }
    site_.settings = value;
  }

  const Json& root_;
  std::string origin_;
  Site site_;
};

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

Values Site::settings_of(const std::string& job) const {
  Values values;
  for (const std::string& part : {std::string("all"), job}) {
    if (!settings.contains(part)) continue;
    for (const auto& [name, value] : settings.at(part).items()) values.set(name, text_of(value), file);
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
  const Json root = parse_commented_object(text, origin);
  return SiteReader(root, origin).read();
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
