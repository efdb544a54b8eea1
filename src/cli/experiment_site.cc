#include <fmt/format.h>

#include <filesystem>

#include "cli/experiment_command.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "experiment/site_discovery.h"

namespace tessera {

int write_site(const ExperimentCommand& command) {
  namespace fs = std::filesystem;
  const Environment environment = Environment::of_process();
  if (command.output.empty()) {
    if (const auto there = site_file(command.site, environment); there && fs::exists(*there)) {
      throw UsageError(fmt::format("{} exists already; -o FILE writes another", there->string()));
    }
  } else if (fs::exists(command.output)) {
    throw UsageError(fmt::format("{} exists already", command.output));
  }
  const fs::path file = !command.output.empty() ? fs::path(command.output) : own_site_file(environment);
  const std::string text = discovered_site_text();
  if (file.has_parent_path()) fs::create_directories(file.parent_path());
  write_file_atomically(file, text);
  print_out(fmt::format("{}:\n{}", file.string(), text));
  return 0;
}

}  // namespace tessera
