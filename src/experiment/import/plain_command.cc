#include "experiment/import/plain_command.h"

#include <fmt/format.h>

#include "experiment/scripts.h"

namespace tessera {

std::string plain_command(const ImportedSettings& settings, const ResolvedExperiment& experiment,
                          const std::filesystem::path& catalogue) {
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

}  // namespace tessera
