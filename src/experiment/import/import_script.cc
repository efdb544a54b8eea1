#include "experiment/import/import_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "experiment/catalogue.h"
#include "experiment/import/imported_settings.h"
#include "experiment/scripts.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Letters that names of experiments, folders and files can have.
std::string plain_name(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                          ((c == '-' || c == '.') && !plain.empty());
    plain += is_plain ? c : '_';
  }
  return plain.empty() ? "run" : plain;
}

const LaunchLine& choose_launch(const ScriptFacts& script, int wanted) {
  const std::vector<LaunchLine>& all = script.launches;
  if (all.empty()) {
    refuse_file(script.name, "it starts no training: expected a line with python, torchrun, deepspeed or accelerate");
  }
  if (wanted == 0 && all.size() == 1) return all.front();
  if (wanted >= 1 && static_cast<std::size_t>(wanted) <= all.size()) return all[static_cast<std::size_t>(wanted) - 1];
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i)
    list += fmt::format("\n  {}  {}  {}", i + 1, all[i].place, all[i].shown());
  refuse_file(script.name, fmt::format("{}; choose one with --launch N:{}",
                                       wanted == 0 ? fmt::format("it starts {} trainings", all.size())
                                                   : fmt::format("--launch {}: there is no such line", wanted),
                                       list));
}

constexpr std::size_t kMostScriptBytes = 1 << 20;  // job scripts have a few thousand

// The text if the file can be a job script.
std::string script_text(const fs::path& path) {
  std::error_code none;
  if (fs::file_size(path, none) > kMostScriptBytes || none) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return text.find('\0') == std::string::npos ? text : "";
}

// A file is itself; of a folder, the one file in it with #SBATCH lines.
fs::path find_script(const fs::path& path) {
  std::error_code none;
  if (!fs::exists(path, none)) refuse_file(path.string(), "there is no such script or folder");
  if (!fs::is_directory(path, none)) {
    if (fs::file_size(path, none) > kMostScriptBytes) refuse_file(path.string(), "too large for a job script");
    return path;
  }
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file(none) && has_sbatch_lines(script_text(entry.path()))) {
      found.push_back(entry.path().filename().string());
    }
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) refuse_file(path.string(), "no file in this folder has #SBATCH lines; name the script itself");
  if (found.size() > 1) {
    refuse_file(path.string(),
                fmt::format("{} files have #SBATCH lines, name one: {}", found.size(), join(found, ", ")));
  }
  return path / found.front();
}

// The run as one command, for users who do not want the catalogue: `export` lines, then `tessera train`,
// `tessera launch ... train` or, on several nodes, `srun ... tessera train`.
std::string plain_command(const ImportedSettings& settings, const ResolvedExperiment& experiment,
                          const fs::path& catalogue) {
  constexpr std::string_view kFile = "catalogue:";
  std::vector<std::string> words;
  const int ranks = experiment.gpus_per_node();
  if (experiment.nodes() > 1) {
    words = {"srun", fmt::format("--nodes={}", experiment.nodes()), fmt::format("--ntasks-per-node={}", ranks),
             "tessera"};
  } else if (ranks > 1) {
    words = {"tessera", "launch", "--nproc_per_node", std::to_string(ranks)};
  } else {
    words = {"tessera"};
  }
  words.insert(words.end(), {"train", experiment.job});
  for (const Values* values : {&settings.settings, &settings.own_folder}) {
    for (const auto& [name, given] : *values) {
      const bool is_file = given.text.starts_with(kFile);
      words.push_back("--" + name);
      words.push_back(is_file ? (catalogue / given.text.substr(kFile.size())).string() : given.text);
    }
  }
  return shell_exports(settings.environment) + shell_command(words);
}

class Importer {
 public:
  explicit Importer(const ImportRequest& request)
      : request_(request), script_(read_script(find_script(request.path), request.environment)) {
    script_.launch = choose_launch(script_, request.launch);
    script_.remarks.place = launch_.place;
  }

  Import run() {
    made_.script = script_.name;
    choose_names();
    const auto [job, reason] = guess_job(launch_, request_.jobs, request_.job);
    made_.job_reason = reason;
    read_accelerate();
    resources_ = imported_resources(script_);
    if (!resources_.has("job_name"))
      resources_.set("job_name", made_.name.substr(made_.name.rfind('/') + 1), "its name");
    settings_ = imported_settings(*job, script_);
    complete_strategy();
    made_.text = experiment_text(job->name);
    check();
    made_.command = plain_command(settings_, made_.resolved, made_.output.parent_path());
    made_.remarks = std::move(script_.remarks.all);
    return std::move(made_);
  }

 private:
  void choose_names() {
    const std::string& job_name = script_.allocation.job_name;
    made_.name = request_.name;
    if (made_.name.empty())
      made_.name = "imported/" + plain_name(job_name.empty() ? script_.path.stem().string() : job_name);
    const std::size_t slash = made_.name.rfind('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == made_.name.size()) {
      throw UsageError(
          fmt::format("--name {}: expected FAMILY/NAME, such as mine/bloom_4_gpus", printable(made_.name, 60)));
    }
    made_.output =
        request_.output.empty() ? fs::path("experiments") / (made_.name.substr(slash + 1) + ".json") : request_.output;
    if (made_.output.extension() != ".json") {
      throw UsageError(
          fmt::format("-o {}: expected a file that ends in .json, as the catalogue's do", made_.output.string()));
    }
  }

  fs::path file_of_script(const std::string& text, const std::string& what) const {
    const fs::path found = find_file_of_script(text, launch_.variables, script_);
    if (!found.empty()) return found;
    throw UsageError(
        fmt::format("{}: {} {}: there is no such file beside the script", launch_.place, what, printable(text, 100)));
  }

  void read_accelerate() {
    if (launch_.launcher != "accelerate") return;
    AccelerateKeys keys;
    std::string place = launch_.place;
    const auto file = launch_.options.find("config_file");
    if (file != launch_.options.end()) {
      const fs::path path = file_of_script(file->second.text, "--config_file");
      place = path.filename().string();
      keys = read_accelerate_yaml(read_file(path), place, script_.remarks);
      script_.remarks.add(Remark::Kind::kTaken, place, "read");
    }
    add_accelerate_options(launch_, keys, script_.remarks);
    script_.remarks.place = place;
    script_.accelerate = interpret_accelerate(keys, script_.remarks);
    script_.remarks.place = launch_.place;
  }

  // Files of other programs come to lie beside the experiment; a plain launch of several ranks is DDP.
  void complete_strategy() {
    const AccelerateConfig& accelerate = script_.accelerate;
    Values& settings = settings_.settings;
    if (!accelerate.deepspeed_file.empty() && !settings.has("deepspeed")) {
      settings.set("deepspeed", accelerate.deepspeed_file, launch_.place);
    }
    for (const char* name : {"deepspeed", "fsdp_config"}) {
      const std::string text = settings.text(name);
      if (text.empty() || trim(text).starts_with('{')) continue;
      const fs::path path = file_of_script(text, std::string("--") + name);
      std::string content = read_file(path);
      check_file(name, path.filename().string(), content);
      keep_file(name, path.filename().string(), std::move(content));
    }
    if (!accelerate.fsdp_config.is_null() && !settings.has("fsdp_config")) {
      keep_file("fsdp_config", "fsdp.json", accelerate.fsdp_config.dump(2) + "\n");
    }
    const bool is_spread =
        settings.has("deepspeed") || settings.has("fsdp") || settings.has("fsdp_config") || settings.has("strategy");
    if (is_spread) return;
    const bool is_single = resources_.text("nodes") == "1" && resources_.text("gpus_per_node") == "1";
    settings.set("strategy", is_single ? "single" : "ddp", launch_.place);
    script_.remarks.place = launch_.place;
    script_.remarks.add(Remark::Kind::kTaken, launch_.shown(),
                        is_single ? "--strategy single: one process"
                                  : "--strategy ddp: several processes without DeepSpeed or FSDP arguments");
  }

  // Here messages can name the file.
  void check_file(const std::string& setting, const std::string& base, const std::string& content) const {
    try {
      setting == "deepspeed" ? read_ds_config(base, content) : read_fsdp_config(base, content);
    } catch (const Error& error) {
      throw error.in_context(fmt::format("{}: --{}", launch_.place, setting));
    }
  }

  void keep_file(const std::string& setting, const std::string& base, std::string content) {
    const std::string path = plain_name(made_.output.stem().string()) + "/" + plain_name(base);
    settings_.settings.set(setting, "catalogue:" + path, launch_.place);
    made_.files[path] = std::move(content);
  }

  static Json section_of(const Values& values) {
    Json section = Json::object();
    for (const auto& [name, given] : values) section[name] = typed_json(given.text);
    return section;
  }

  std::string experiment_text(const std::string& job) const {
    const std::size_t slash = made_.name.rfind('/');
    Json experiment = Json::object();
    experiment["settings"] = section_of(settings_.settings);
    if (!settings_.environment.empty()) experiment["environment"] = section_of(settings_.environment);
    experiment["resources"] = section_of(resources_);
    if (!script_.gate.empty()) experiment["gate"] = section_of(script_.gate);
    const Json file = {{"tessera_experiments", kCatalogueFormat},
                       {"family", made_.name.substr(0, slash)},
                       {"job", job},
                       {"experiments", Json{{made_.name.substr(slash + 1), experiment}}}};
    return fmt::format("// Imported from {}.\n{}\n", printable(script_.name, 200), json_text(file, 2));
  }

  // As the catalogue reads the file and as `tessera experiment run` resolves it.
  void check() {
    const std::string origin = made_.output.string();
    std::vector<ExperimentSpec> specs = read_catalogue_file(made_.text, origin, "guide").experiments;
    const Catalogue catalogue{CatalogueOptions{}};
    const ExperimentSpec* other = catalogue.find(made_.name);
    if (other != nullptr && fs::path(other->file).lexically_normal() != made_.output.lexically_normal()) {
      throw UsageError(fmt::format("{} is already an experiment of {}; choose another with --name FAMILY/NAME",
                                   made_.name, other->file));
    }
    // The files are not written yet: their texts stand in for them.
    ExperimentSpec spec = specs.at(0);
    for (const char* name : {"deepspeed", "fsdp_config"}) {
      const std::string text = spec.settings.text(name);
      if (text.starts_with("catalogue:"))
        spec.settings.set(name, made_.files.at(text.substr(std::string("catalogue:").size())), origin);
    }
    ResolveOptions options;
    options.jobs = request_.jobs;
    options.environment = request_.environment;
    try {
      made_.resolved = resolve(spec, catalogue, options);
    } catch (const Error& error) {
      throw error.in_context(fmt::format("nothing is written, because `tessera train` would refuse {}", script_.name));
    }
  }

  const ImportRequest& request_;
  ScriptFacts script_;
  const LaunchLine& launch_ = script_.launch;
  Import made_;
  Values resources_;
  ImportedSettings settings_;
};

}  // namespace

Import import_script(const ImportRequest& request) {
  return Importer(request).run();
}

std::string import_report(const Import& imported) {
  const ResolvedExperiment& experiment = imported.resolved;
  std::string text =
      fmt::format("{} is {}: {}, {} node{} x {} GPU{}\n  job {}: {}\n", imported.script, imported.name, experiment.job,
                  experiment.nodes(), experiment.nodes() == 1 ? "" : "s", experiment.gpus_per_node(),
                  experiment.gpus_per_node() == 1 ? "" : "s", experiment.job, imported.job_reason);
  text += remarks_text(imported.remarks);
  if (!experiment.notes.empty()) {
    text += "\n`tessera train` says:\n";
    for (const std::string& note : experiment.notes) text += fmt::format("  {}\n", note);
  }
  if (!experiment.missing.empty()) {
    text += fmt::format("\nBefore it can run, give the settings that the Python program had in its code:\n  {}\n",
                        experiment.missing);
  }
  return text + fmt::format("\nThe same run without the catalogue:\n\n{}\n", imported.command);
}

}  // namespace tessera
