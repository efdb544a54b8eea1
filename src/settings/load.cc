#include "settings/load.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "settings/declared.h"
#include "settings/ds_config.h"
#include "settings/env_file.h"
#include "settings/fsdp_config.h"
#include "settings/hugging_face.h"
#include "settings/resolve.h"

namespace tessera {

namespace {

using Jobs = std::vector<const JobTraits*>;

std::vector<std::string> names_of(const Jobs& jobs) {
  std::vector<std::string> names;
  for (const JobTraits* job : jobs) names.push_back(job->name);
  return names;
}

std::string usage(const Jobs& jobs) {
  std::string text = "usage: tessera train JOB [settings]\n\njobs:\n";
  for (const JobTraits* job : jobs) text += fmt::format("  {:<20}  {}\n", job->name, job->summary);
  return text + "\n`tessera train JOB --help` lists the settings.\n";
}

// Null: help was asked for.
const JobTraits* find_job(const Jobs& jobs, const std::vector<std::string>& arguments) {
  if (!arguments.empty() && (arguments[0] == "-h" || arguments[0] == "--help")) return nullptr;
  if (arguments.empty() || arguments[0].starts_with('-')) {
    throw UsageError(fmt::format("tessera train: the job comes first: one of {}", join(names_of(jobs), ", ")));
  }
  for (const JobTraits* job : jobs) {
    if (job->name == arguments[0]) return job;
  }
  const auto meant = nearest(arguments[0], names_of(jobs));
  throw UsageError(fmt::format("tessera train: '{}' is not a job{}; jobs: {}", printable(arguments[0], 40),
                               meant ? fmt::format(", did you mean {}?", *meant) : "", join(names_of(jobs), ", ")));
}

// As transformers accepts them: a path, or the JSON itself.
std::pair<std::string, std::string> origin_and_text(const char* option, const std::string& value) {
  if (trim(value).starts_with('{')) return {option, value};
  return {value, read_file(value)};
}

// The names that an env file may have for another job.
std::vector<std::string> variables_of(const Jobs& jobs) {
  std::vector<std::string> names;
  for (const JobTraits* job : jobs) {
    DeclaredSettings declared;
    Schema schema("", "");
    declare(schema, *job, declared);
    for (std::string& variable : schema.environment_names()) names.push_back(std::move(variable));
  }
  return names;
}

void read_sources(const TrainRequest& request, const DeclaredSettings& s, Schema& schema,
                  std::vector<std::string>& notes) {
  schema.read_environment(request.environment);
  if (!s.env_file.empty()) read_env_file(s.env_file, request.environment, variables_of(request.jobs), schema, notes);
  if (!s.deepspeed.empty() && (!s.fsdp.empty() || !s.fsdp_config.empty())) {
    throw UsageError("--deepspeed and --fsdp exclude each other; give one");
  }
  if (!s.deepspeed.empty()) {
    const auto [origin, text] = origin_and_text("--deepspeed", s.deepspeed);
    apply(read_ds_config(origin, text), OnDifference::kRefuse, schema, notes);
  }
  apply(read_fsdp_words(s.fsdp), OnDifference::kRefuse, schema, notes);
  if (!s.fsdp_config.empty()) {
    const auto [origin, text] = origin_and_text("--fsdp_config", s.fsdp_config);
    apply(read_fsdp_config(origin, text), OnDifference::kYield, schema, notes);
  }
}

}  // namespace

LoadedTrainSettings::LoadedTrainSettings() = default;
LoadedTrainSettings::LoadedTrainSettings(LoadedTrainSettings&&) noexcept = default;
LoadedTrainSettings& LoadedTrainSettings::operator=(LoadedTrainSettings&&) noexcept = default;
LoadedTrainSettings::~LoadedTrainSettings() = default;

LoadedTrainSettings load_train_settings(const TrainRequest& request) {
  LoadedTrainSettings loaded;
  loaded.request = request;
  const JobTraits* job = find_job(request.jobs, request.arguments);
  if (job == nullptr) {
    print_out(usage(request.jobs));
    loaded.is_done = true;
    return loaded;
  }
  loaded.declared = std::make_unique<DeclaredSettings>();
  loaded.schema = std::make_unique<Schema>("tessera train " + job->name, job->summary);
  DeclaredSettings& declared = *loaded.declared;
  Schema& schema = *loaded.schema;
  declare(schema, *job, declared);
  if (request.declare_more) request.declare_more(schema);
  if (!schema.read_command_line({request.arguments.begin() + 1, request.arguments.end()})) {
    loaded.is_done = true;
    return loaded;
  }
  read_sources(request, declared, schema, loaded.notes);
  check_foreign(schema, loaded.notes);
  const bool needs_data = request.needs_data && !schema.wants_print_config();
  resolve(schema, *job, declared, {.num_ranks = request.num_ranks, .needs_data = needs_data}, loaded.notes);
  loaded.settings = declared.train;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    loaded.is_done = true;
  }
  return loaded;
}

}  // namespace tessera
