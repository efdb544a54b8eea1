#include "cli/experiment_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "core/version.h"
#include "jobs/jobs.h"
#include "record/find_runs.h"

namespace tessera {
namespace {

constexpr const char* kOrigin = "command line";

struct ExperimentSettings {
  ExperimentCommand command;
  std::map<std::string, std::string> resources;
  std::string gate, min_busbw;
};

void declare(Schema& schema, ExperimentSettings& settings) {
  ExperimentCommand& s = settings.command;
  schema.positionals(
      "list|show|run|submit|status|cancel|rerun|collect|table|report|site NAME...: of experiments, folders of them, or "
      "patterns",
      &s.words);
  schema.group("Which experiments");
  schema.text("preset", &s.preset, "guide: as the workshops' documents have them; code: as their code has",
              {.preset = "guide"});
  schema.text("scale", &s.scale,
              "tiny: CPU ranks, a tiny model, a tenth of the rows: a rehearsal on any machine, in about a minute",
              {.preset = "full", .choices = {"full", "tiny"}});
  schema.text("catalogue", &s.catalogue, "folders with more experiments, besides ./experiments", {.is_list = true});
  schema.text("runs", &s.runs, "the folder in which each run gets one of its own", {.preset = "runs"});
  schema.text("user", &s.user, "whose runs, where several users share the folder: a name, or all; none: your own");
  schema.text("site", &s.site, "the cluster's site file; none: TESSERA_SITE, else ~/.config/tessera/site.json");
  schema.group("What a run gets");
  for (const std::string& name : resource_names()) {
    schema.text(name, &settings.resources[name], "instead of the catalogue's");
  }
  schema.text("min_busbw", &settings.min_busbw, "the gate's threshold in GB/s, instead of the catalogue's");
  schema.text("gate", &settings.gate, "measure the bandwidth before a run, or do not", {.choices = {"on", "off"}});
  schema.group("Output");
  schema.text("format", &s.format, "of a table", {.preset = "text", .choices = {"text", "md", "csv", "html"}});
  schema.text("output", &s.output, "table: a file to write instead", {.short_name = 'o'});
  schema.boolean("json", &s.as_json, "list, show: for programs");
  schema.boolean("dry_run", &s.dry_run, "run, submit: only print the script");
  schema.group("Several runs");
  schema.boolean("keep_going", &s.keep_going, "run: go on to the next experiment if one fails");
  schema.integer("max_parallel", &s.max_parallel,
                 "submit: at most so many jobs run at once; 0: as many as Slurm allows",
                 {.preset = "0", .at_least = 0});
  schema.boolean("baseline_first", &s.baseline_first, "submit: the others wait for their baseline");
  schema.boolean("wandb_sync", &s.wandb_sync, "submit: `wandb sync` at the end of the job");
  schema.boolean("failed", &s.failed, "rerun: those that failed");
  schema.boolean("all", &s.all, "status: also older runs of each experiment");
}

bool is_option(const std::string& word) {
  return word.size() > 2 && word.starts_with("--");
}

// Divides the arguments: what the command itself knows, and settings of `tessera train` (with the words that follow
// each, up to the next option).
std::vector<std::string> take_settings(const std::vector<std::string>& args, const Schema& schema, Values& settings) {
  std::vector<std::string> own;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = is_option(args[i]) ? args[i].substr(2, args[i].find('=') - 2) : "";
    const bool is_own = name.empty() || name == "help" || name == "print_config" || schema.has(name) ||
                        (name.starts_with("no_") && schema.has(name.substr(3)));
    if (is_own) {
      own.push_back(args[i]);
      continue;
    }
    const std::size_t equals = args[i].find('=');
    if (equals != std::string::npos) {
      settings.set(name, args[i].substr(equals + 1), kOrigin);
    } else if (i + 1 < args.size() && !is_option(args[i + 1])) {
      settings.set(name, args[++i], kOrigin);
    } else if (name.starts_with("no_")) {
      settings.set(name.substr(3), "false", kOrigin);
    } else {
      settings.set(name, "true", kOrigin);
    }
  }
  return own;
}

// Options that the verb would not look at are refused.
void check_options(const ExperimentCommand& command, const Schema& schema) {
  const auto is_any = [&](std::initializer_list<const char*> verbs) {
    return std::ranges::any_of(verbs, [&](const char* verb) { return command.verb() == verb; });
  };
  if (!command.settings.empty() && !is_any({"run", "submit", "show", "rerun"})) {
    const std::string name = command.settings.begin()->first;
    const std::vector<std::string> names = texts_of(schema.shown(), &Setting::name);
    throw UsageError(fmt::format("tessera experiment {}: unknown option --{}{}", printable(command.verb(), 40),
                                 printable(name, 40), did_you_mean(name, names, ", did you mean --{}?")));
  }
  if (command.dry_run && !is_any({"run", "submit", "rerun"})) {
    throw UsageError(fmt::format("--dry_run is an option of run, submit and rerun, not of {}", command.verb()));
  }
}

// Returns false when help was asked for and has been printed.
bool read_experiment_command(const std::vector<std::string>& args, ExperimentCommand& command) {
  ExperimentSettings read;
  Schema schema("tessera experiment", "the experiments of the catalogue: list, show, run, submit, table, ...");
  declare(schema, read);
  Values of_training;
  if (!read_settings(schema, take_settings(args, schema, of_training))) return false;
  command = read.command;
  command.settings = std::move(of_training);
  for (const std::string& name : resource_names()) {
    if (schema.at(name).is_set()) command.resources.set(name, read.resources.at(name), kOrigin);
  }
  if (schema.at("gate").is_set()) command.gate.set("enabled", read.gate == "on" ? "true" : "false", kOrigin);
  command.chooses_variant = schema.at("preset").is_set() || schema.at("scale").is_set();
  check_options(command, schema);
  if (schema.at("min_busbw").is_set()) command.gate.set("min_busbw", read.min_busbw, kOrigin);
  return true;
}

}  // namespace

Catalogue open_catalogue(const std::string& folders, const std::string& preset) {
  CatalogueOptions options;
  options.preset = preset;
  if (!folders.empty()) {
    for (const std::string& folder : split(folders, ',')) options.folders.emplace_back(folder);
  }
  return Catalogue(options);
}

Catalogue catalogue_of(const ExperimentCommand& command) {
  return open_catalogue(command.catalogue, command.preset);
}

std::vector<ResolvedExperiment> resolved_of(const ExperimentCommand& command, const Catalogue& catalogue) {
  if (command.names().empty()) {
    throw UsageError(fmt::format("expected: tessera experiment {} NAME...; `tessera experiment list` shows the names",
                                 command.verb()));
  }
  ResolveOptions options;
  options.preset = command.preset;
  options.scale = command.scale == "tiny" ? Scale::kTiny : Scale::kFull;
  options.settings = command.settings;
  options.resources = command.resources;
  options.gate = command.gate;
  options.jobs = job_traits();
  options.environment = Environment::of_process();
  const Site site = site_of(command);
  options.site_environment = site.environment;
  std::vector<ResolvedExperiment> resolved;
  for (const ExperimentSpec* spec : catalogue.select(command.names())) {
    options.site_settings = site.settings_of(spec->job);
    resolved.push_back(resolve(*spec, catalogue, options));
  }
  return resolved;
}

Site site_of(const ExperimentCommand& command) {
  return read_site(command.site, Environment::of_process());
}

RunsFolder read_runs_folder(const std::filesystem::path& runs) {
  if (!is_folder(runs)) return {};
  RunPlaces places = find_run_places({runs.string()});
  std::vector<std::string> problems;
  RunsFolder folder{std::move(places.records), read_stored_runs(places.experiment_folders, problems)};
  for (const std::string& problem : problems) log_warn("skipped: {}", problem);
  return folder;
}

std::vector<StoredRun> chosen_of(const ExperimentCommand& command, const RunsFolder& folder,
                                 const std::vector<std::string>& names) {
  std::vector<StoredRun> stored = folder.stored;
  std::erase_if(stored, [&](const StoredRun& run) {
    return !names.empty() &&
           std::ranges::none_of(names, [&](const std::string& word) { return names_experiment(word, run.experiment); });
  });
  const std::string user = command.user.empty() ? current_user() : command.user;
  if (user == "all") return stored;
  std::set<std::string> others;
  std::erase_if(stored, [&](const StoredRun& run) {
    if (run.user != user) others.insert(run.user);
    return run.user != user;
  });
  if (stored.empty() && !others.empty()) {
    throw UsageError(fmt::format("{}: none of these runs is of user {}; --user takes {} or all", command.runs, user,
                                 join({others.begin(), others.end()}, ", ")));
  }
  return stored;
}

std::vector<StoredRun> stored_of(const ExperimentCommand& command) {
  return chosen_of(command, read_runs_folder(command.runs), command.names());
}

Program this_program() {
  // A wheel's starter finds torch and MPI before it becomes this program (packaging/wheel/start.cc): scripts call it.
  const auto starter = Environment::of_process().find("TESSERA_STARTER");
  return {starter.value_or(std::filesystem::read_symlink("/proc/self/exe").string()), kVersion, build_commit()};
}

namespace {

int run_experiment(const std::vector<std::string>& args) {
  static const std::map<std::string, std::function<int(const ExperimentCommand&)>> verbs = {
      {"list", list_experiments},
      {"show", show_experiments},
      {"run", run_experiments},
      {"submit", submit_experiments},
      {"rerun", rerun_experiments},
      {"status", status_of_experiments},
      {"cancel", cancel_experiments},
      {"table", table_of_experiments},
      {"report", report_experiments},
      {"collect", collect_experiments},
      {"site", write_site}};
  ExperimentCommand command;
  if (!read_experiment_command(args, command)) return 0;
  const auto verb = verbs.find(command.verb());
  if (verb != verbs.end()) return verb->second(command);
  const std::vector<std::string> names = texts_of(verbs, [](const auto& each) { return each.first; });
  throw UsageError(fmt::format(
      "tessera experiment: {}{}; verbs: {}",
      command.words.empty() ? "the verb comes first" : fmt::format("unknown verb '{}'", printable(command.verb(), 40)),
      did_you_mean(command.verb(), names), join(names, ", ")));
}

}  // namespace

Command experiment_command() {
  return {.name = "experiment",
          .summary = "the experiments of the catalogue: list, show, run, submit, table, ...",
          .has_rank = false,
          .declare = [](Schema& schema) { declare(schema, schema.keep<ExperimentSettings>()); },
          .run = run_experiment};
}

}  // namespace tessera
