#include "settings/load.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "settings/env_file.h"

namespace tessera {

namespace {

using Jobs = std::vector<const JobTraits*>;

std::string usage(const Jobs& jobs) {
  std::string text = "usage: tessera train JOB [settings]\n\njobs:\n";
  for (const JobTraits* job : jobs) text += fmt::format("  {:<20}  {}\n", job->name, job->summary);
  return text + "\n`tessera train JOB --help` lists the settings.\n";
}

// Null: help was asked for.
const JobTraits* find_job(const Jobs& jobs, const std::vector<std::string>& arguments) {
  if (!arguments.empty() && (arguments[0] == "-h" || arguments[0] == "--help")) return nullptr;
  const std::vector<std::string> names = texts_of(jobs, &JobTraits::name);
  if (arguments.empty() || arguments[0].starts_with('-')) {
    throw UsageError(fmt::format("tessera train: the job comes first: one of {}", join(names, ", ")));
  }
  for (const JobTraits* job : jobs) {
    if (job->name == arguments[0]) return job;
  }
  throw UsageError(fmt::format("tessera train: '{}' is not a job{}; jobs: {}", printable(arguments[0], 40),
                               did_you_mean(arguments[0], names, ", did you mean {}?"), join(names, ", ")));
}

// The names that an env file may have for some job, and the first job that has them.
std::map<std::string, std::string> variables_of(const Jobs& jobs) {
  std::map<std::string, std::string> names;
  for (const JobTraits* job : jobs) {
    DeclaredSettings declared;
    Schema schema("", "");
    declare(schema, *job, declared);
    for (const std::string& variable : schema.environment_names()) names.emplace(variable, job->name);
  }
  return names;
}

void read_sources(const TrainRequest& request, const DeclaredSettings& s, Schema& schema,
                  std::vector<std::string>& notes) {
  schema.read_environment(request.environment);
  if (!s.env_file.empty()) read_env_file(s.env_file, request.environment, variables_of(request.jobs), schema, notes);
  read_foreign_files(s.files, schema, notes);
}

}  // namespace

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
  check_foreign(schema, *job, loaded.notes);
  const bool needs_data = request.needs_data && !schema.wants_print_config();
  const Resolution how = {.num_ranks = request.num_ranks, .needs_data = needs_data, .environment = request.environment};
  resolve(schema, *job, declared, how, loaded.notes);
  loaded.settings = declared.train;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    loaded.is_done = true;
  }
  return loaded;
}

}  // namespace tessera
