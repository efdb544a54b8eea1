#include "jobs/squad_search.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSquad = "squad";
// Names of the two files, SQuAD's own first. The others are too common to be taken from any folder but squad/.
struct SquadNames {
  const char* training;
  std::array<const char*, 2> validation;
};
constexpr std::array<SquadNames, 3> kSquadFiles = {{{"train-v1.1.json", {"dev-v1.1.json", "validation-v1.1.json"}},
                                                    {"train.jsonl", {"validation.jsonl", "dev.jsonl"}},
                                                    {"train.json", {"validation.json", "dev.json"}}}};

fs::path datasets_cache(const Environment& environment) {
  if (const auto cache = environment.find("HF_DATASETS_CACHE")) return *cache;
  return hugging_face_home(environment) / "datasets";
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::optional<FoundSquad> squad_in(const fs::path& folder) {
  const std::size_t num_names = folder.filename() == kSquad ? kSquadFiles.size() : 1;
  for (std::size_t i = 0; i < num_names; ++i) {
    const SquadNames& names = kSquadFiles[i];
    if (!is_file(folder / names.training)) continue;
    FoundSquad found{folder / names.training, {}};
    for (const char* name : names.validation) {
      if (found.validation.empty() && is_file(folder / name)) found.validation = folder / name;
    }
    return found;
  }
  return std::nullopt;
}

// <folder>/<config>/<version>/<fingerprint>/squad-train.arrow
bool has_arrow_files(const fs::path& folder) {
  constexpr int kDeepest = 4;
  std::error_code error;
  fs::recursive_directory_iterator each(folder, error);
  while (!error && each != fs::end(each)) {
    if (each->path().extension() == ".arrow") return true;
    if (each.depth() >= kDeepest) each.disable_recursion_pending();
    each.increment(error);
  }
  return false;
}

// How to make a file of `datasets`' own, if there are any.
std::string advice_on_arrow(const fs::path& cache, const fs::path& target) {
  for (const auto& [folder, name] : {std::pair(kSquad, kSquad), std::pair("rajpurkar___squad", "rajpurkar/squad")}) {
    if (!has_arrow_files(cache / folder)) continue;
    return fmt::format(
        "; {0} has it as Arrow files, which Tessera does not read: run python3 -c \"import os, datasets; "
        "os.makedirs('{1}', exist_ok=True); datasets.load_dataset('{2}', split='train').to_json('{1}/train.jsonl')\", "
        "and {1}/train.jsonl will be found (the same with 'validation' for an evaluation)",
        (cache / folder).string(), target.string(), name);
  }
  return "";
}

}  // namespace

FoundSquad find_squad(const std::string& data_dir, const Environment& environment, const fs::path& here) {
  const fs::path cache = datasets_cache(environment);
  std::vector<fs::path> folders;
  if (!data_dir.empty()) folders = {data_dir, fs::path(data_dir) / kSquad};
  folders.insert(folders.end(), {here / "data", here / "data" / kSquad, here / kSquad, cache / kSquad});
  std::vector<std::string> tried;
  for (const fs::path& folder : folders) {
    if (auto found = squad_in(folder)) return *std::move(found);
    tried.push_back(folder.string());
  }
  const fs::path target = (data_dir.empty() ? here : fs::path(data_dir)) / kSquad;
  throw UsageError(
      fmt::format("--train_file FILE is missing, and there is no SQuAD in {} ({}; in folders named squad also {} or "
                  "{}): give --train_file, or --data_dir{}",
                  join(tried, ", "), kSquadFiles[0].training, kSquadFiles[1].training, kSquadFiles[2].training,
                  advice_on_arrow(cache, target)));
}

}  // namespace tessera
