#include "jobs/qa_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hugging_face_cache.h"
#include "core/text.h"
#include "data/text/numpy_permutation.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TextDataSettings data_settings(const TrainSettings& settings, const std::string& file, std::int64_t max_rows,
                               const Environment& environment) {
  TextDataSettings text;
  text.file = file;
  text.subset = {max_rows == 0 ? -1 : max_rows, settings.data.subset_seed.has_value(),
                 static_cast<std::uint64_t>(settings.data.subset_seed.value_or(0))};
  text.label_mode = label_mode_of(settings.data.label_mode);
  text.max_length = settings.data.max_length;
  text.cache_folder = default_cache_folder(environment);
  return text;
}

// How the same rows become prompts: question and "Answer:" are whole, with room for the answer.
TextDataSettings prompt_settings(const TrainSettings& settings, const OpenedModel& model, TextDataSettings text) {
  text.label_mode = LabelMode::kAnswer;
  const std::int64_t max_new_tokens = settings.evaluation.max_new_tokens;
  if (const auto positions = model.model->max_positions()) {
    text.max_length = std::min(text.max_length, *positions - max_new_tokens + 1);
    if (text.max_length < 1) {
      throw UsageError(fmt::format("--max_new_tokens {}: the model has positions for {} tokens, question included",
                                   max_new_tokens, *positions));
    }
  }
  return text;
}

std::vector<SquadRow> rows_with_answers(const TextDataSettings& text, const std::string& bytes) {
  const SquadFile file = parse_squad(bytes, text.file.string());
  if (std::ranges::none_of(file.rows, [](const SquadRow& row) { return !row.answers.empty(); })) {
    throw UsageError(
        fmt::format("{}: none of its {} rows has an answer to compare with; use a file with answers, or "
                    "--predict_with_generate false",
                    text.file.string(), file.rows.size()));
  }
  std::vector<SquadRow> rows;
  for (const std::int64_t row : rows_of(text.subset, std::ssize(file.rows))) {
    rows.push_back(file.rows[static_cast<std::size_t>(row)]);
  }
  return rows;
}

constexpr const char* kSquad = "squad";
// Names of the two files, SQuAD's own first. The others are too common to be taken from any folder but squad/.
struct SquadNames {
  const char* training;
  std::array<const char*, 2> validation;
};
constexpr std::array<SquadNames, 3> kSquadFiles = {{{"train-v1.1.json", {"dev-v1.1.json", "validation-v1.1.json"}},
                                                    {"train.jsonl", {"validation.jsonl", "dev.jsonl"}},
                                                    {"train.json", {"validation.json", "dev.json"}}}};

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

TextData open_qa_training(const TrainSettings& settings, const OpenedModel& model, const Environment& environment) {
  const DataSettings& data = settings.data;
  return load_text_data(data_settings(settings, data.train_file, data.max_train_samples, environment), model.tokenizer);
}

QaEvaluationData open_qa_evaluation(const TrainSettings& settings, const OpenedModel& model,
                                    const Environment& environment) {
  const DataSettings& data = settings.data;
  const TextDataSettings text = data_settings(settings, data.validation_file, data.max_eval_samples, environment);
  if (!settings.evaluation.generates) return {load_text_data(text, model.tokenizer), {}};
  const std::string bytes = read_squad_bytes(text.file);
  const std::vector<SquadRow> rows = rows_with_answers(text, bytes);
  QaEvaluationData opened{load_text_data(text, model.tokenizer, bytes), {}};
  const TextDataSettings as_prompts = prompt_settings(settings, model, text);
  const bool is_alike = as_prompts.label_mode == text.label_mode && as_prompts.max_length == text.max_length;
  if (is_alike) {
    opened.prompts = prompts_of(opened.text.tokens, rows);
    return opened;
  }
  try {
    opened.prompts = prompts_of(load_text_data(as_prompts, model.tokenizer, bytes).tokens, rows);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kUsage || as_prompts.max_length == text.max_length) throw;
    throw UsageError(fmt::format("{} (--max_new_tokens {} leaves {} of the model's positions for question and answer)",
                                 error.what(), settings.evaluation.max_new_tokens, as_prompts.max_length));
  }
  return opened;
}

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
