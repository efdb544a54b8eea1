// `tessera import`: a user's sbatch script as an experiment of the catalogue.
#include <fmt/format.h>

#include "cli/commands.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "experiment/import/import_script.h"
#include "jobs/jobs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct ImportSettings {
  std::vector<std::string> words;
  std::string output, name, job;
  int launch = 0;
  bool force = false, dry_run = false;
};

void declare(Schema& schema, ImportSettings& s) {
  const std::string job_names = join(texts_of(job_traits(), &JobTraits::name), ", ");
  schema.positionals("SCRIPT|FOLDER: an sbatch script, or the folder that holds one; it is read, never executed",
                     &s.words);
  schema.text("output", &s.output, "the experiment file to write; none: experiments/NAME.json", {.short_name = 'o'});
  schema.text("name", &s.name, "FAMILY/NAME of the experiment; none: imported/ and the job's name");
  schema.text("job", &s.job, fmt::format("what the script trains, if it cannot be guessed: {}", job_names));
  schema.integer("launch", &s.launch, "which of several training lines, from 1; 0: the only one",
                 {.preset = "0", .at_least = 0});
  schema.boolean("force", &s.force, "replace files that exist");
  schema.boolean("dry_run", &s.dry_run, "write nothing: print the experiment file instead");
}

// In ./experiments an experiment is found by its name alone.
std::string next_step(const Import& imported) {
  const fs::path folder = imported.output.parent_path().lexically_normal();
  const std::string option =
      folder == "experiments" ? "" : fmt::format(" --catalogue {}", folder.empty() ? "." : folder.string());
  return fmt::format("show it: tessera experiment show {}{}\nrun it:  tessera experiment run {}{}\n", imported.name,
                     option, imported.name, option);
}

int run_import(Schema&, ImportSettings& settings) {
  if (settings.words.size() != 1) throw UsageError("expected: tessera import SCRIPT.sbatch|FOLDER [-o FILE.json]");
  const ImportRequest request{.path = settings.words.front(),
                              .output = settings.output,
                              .name = settings.name,
                              .job = settings.job,
                              .launch = settings.launch,
                              .jobs = job_traits(),
                              .environment = Environment::of_process()};
  const Import imported = import_script(request);
  std::vector<std::pair<fs::path, std::string>> files;
  for (const auto& [path, content] : imported.files) files.emplace_back(imported.output.parent_path() / path, content);
  files.emplace_back(imported.output, imported.text);
  // All files or none: a second import must not leave half of a first one.
  for (const auto& [path, content] : files) {
    if (settings.force || settings.dry_run || !is_there(path)) continue;
    throw UsageError(
        fmt::format("{}: it exists; choose another with -o or --name, or replace it with --force", path.string()));
  }
  print_out(import_report(imported) + "\n");
  if (settings.dry_run) {
    print_out(fmt::format("{}, not written:\n\n{}", imported.output.string(), imported.text));
    return 0;
  }
  for (const auto& [path, content] : files) {
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    write_file_atomically(path, content);
    print_out(fmt::format("wrote {}\n", path.string()));
  }
  print_out(next_step(imported));
  return 0;
}

}  // namespace

Command import_command() {
  return with_settings<ImportSettings>(
      {.name = "import", .summary = "turn an sbatch script with its files into an experiment"}, declare, run_import);
}

}  // namespace tessera
