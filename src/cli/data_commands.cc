// `tessera data inspect` shows what a file or folder holds, and what training makes of it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>

#include "cli/commands.h"
#include "cli/row_report.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "data/images/image_folder.h"
#include "data/rows/row_files.h"
#include "data/rows/row_form.h"
#include "data/rows/row_format.h"
#include "data/text/qa_sequence.h"
#include "data/text/squad.h"
#include "data/text/text_report.h"
#include "data/text/token_cache.h"
#include "data/tokenizer/tokenizer.h"
#include "jobs/jobs.h"
#include "jobs/row_settings.h"
#include "settings/shared.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct DataCommandSettings {
  std::vector<std::string> words;
  std::string tokenizer, job, label_mode, cache_folder;
  std::int64_t max_samples = 0, subset_seed = 0, batch_size = 0, batch_tokens = 0, num_shown = 0;
  bool as_json = false, uses_cache = true;
  DeclaredSettings of_jobs;  // of sft and lm, as they declare them
};

// Groups, by which settings are refused where they mean nothing.
constexpr const char* kOfRows = "Rows of sft and lm";
constexpr const char* kOfSft = "sft alone";
constexpr const char* kOfLm = "lm alone";
constexpr const char* kOfSquad = "SQuAD, for qa";

void declare(Schema& schema, DataCommandSettings& s) {
  schema.positionals("inspect PATH...: files of rows, SQuAD's, or of text; or a folder of images", &s.words);
  schema.text("job", &s.job,
              "how to read PATH: as `tessera train` sft, lm or qa does; not given: SQuAD's questions as qa, plain text "
              "as lm, other rows as sft. For qa --max_length is 512 by default",
              {.choices = {"sft", "lm", "qa"}});
  schema.text("tokenizer", &s.tokenizer,
              "a model's folder, its hub name if it is fetched, or a tokenizer.json; without it no tokens are counted",
              {.aliases = {"tokenizer_name", "model_name_or_path"}});
  schema.text("cache_folder", &s.cache_folder,
              "folder of the token cache; not given: $TESSERA_CACHE, $XDG_CACHE_HOME/tessera or ~/.cache/tessera");
  schema.boolean("cache", &s.uses_cache, "keep the tokens for the next run", {.preset = "true"});
  schema.group(kOfRows);
  declare_rows(schema, s.of_jobs);
  shared::seeds(schema, &s.of_jobs.train.loop.seed, &s.of_jobs.data_seed);
  schema.integer("show", &s.num_shown, "how many of the first rows to show", {.preset = "3", .at_least = 0});
  schema.group(kOfSft);
  declare_sft_rows(schema, s.of_jobs);
  schema.group(kOfLm);
  declare_lm_rows(schema, s.of_jobs);
  schema.group(kOfSquad);
  schema.text("label_mode", &s.label_mode, "which tokens count for the loss",
              {.preset = "answer", .choices = label_mode_names()});
  schema.integer("max_samples", &s.max_samples, "use only this many rows; -1: all", {.preset = "-1", .at_least = -1});
  schema.integer("subset_seed", &s.subset_seed,
                 "choose them as datasets' shuffle(seed).select(range(n)) does; not given: the first ones",
                 {.at_least = 0});
  schema.integer("batch_size", &s.batch_size, "rows per batch, to compute the share of padding avoided",
                 {.preset = "4", .at_least = 1});
  schema.integer("batch_tokens", &s.batch_tokens,
                 "tokens per batch, to show how rows pack into such batches; 0: do not show",
                 {.preset = "0", .at_least = 0});
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print one JSON object (not of images)");
}

fs::path cache_folder_of(const DataCommandSettings& s) {
  if (!s.uses_cache) return {};
  return s.cache_folder.empty() ? default_cache_folder(Environment::of_process()) : fs::path(s.cache_folder);
}

// qa's own: rows are shorter there.
std::int64_t squad_max_length(const Schema& schema, const DataCommandSettings& s) {
  return schema.at("max_length").is_set() ? s.of_jobs.train.data.max_length : 512;
}

// What happened with the cache, for the report.
std::string cache_text(const TextData& data) {
  if (data.cache_use == CacheUse::kFound) return "found in " + data.cache_file.string();
  return data.cache_use == CacheUse::kMade ? "kept in " + data.cache_file.string() : "not kept";
}

TextDataSettings text_settings(const Schema& schema, const DataCommandSettings& s, const fs::path& path) {
  TextDataSettings text;
  text.file = path;
  text.subset = {s.max_samples, schema.at("subset_seed").is_set(), static_cast<std::uint64_t>(s.subset_seed)};
  text.label_mode = label_mode_of(s.label_mode);
  text.max_length = squad_max_length(schema, s);
  text.cache_folder = cache_folder_of(s);
  return text;
}

// A setting that is given where it has no effect is a user's mistake.
void refuse_given(const Schema& schema, std::initializer_list<const char*> names, const std::string& reason) {
  for (const char* name : names) {
    if (schema.at(name).source() == Source::kCommandLine) throw UsageError(fmt::format("--{} {}", name, reason));
  }
}

// The same for whole groups. max_length is of all text.
void refuse_groups(const Schema& schema, std::initializer_list<const char*> groups, const std::string& what) {
  for (const Setting* setting : schema.shown()) {
    if (setting->source() != Source::kCommandLine || setting->name() == "max_length") continue;
    for (const char* group : groups) {
      if (setting->group() == group) {
        throw UsageError(
            fmt::format("--{} is for {}; this is {} (--job says otherwise)", setting->name(), group, what));
      }
    }
  }
}

void inspect_squad(const Schema& schema, const DataCommandSettings& s, const fs::path& path) {
  refuse_groups(schema, {kOfRows, kOfSft, kOfLm}, "read as SQuAD");
  if (s.tokenizer.empty()) {
    refuse_given(schema,
                 {"label_mode", "max_length", "max_samples", "subset_seed", "batch_size", "batch_tokens",
                  "cache_folder", "cache"},
                 "is about tokens: give --tokenizer too");
  }
  const std::string bytes = read_squad_bytes(path);  // once, so that it may be a pipe
  const SquadSummary file = summarise(parse_squad(bytes, path.string()));
  std::string text = fmt::format("{}\n{}", path.string(), summary_text(file));
  Json json = {{"path", path.string()}, {"file", summary_json(file)}};
  if (!s.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(find_model_folder(s.tokenizer, Environment::of_process()));
    const std::string warning = warning_of(label_mode_of(s.label_mode));
    if (!warning.empty()) log_warn("{}", warning);
    const auto start = std::chrono::steady_clock::now();
    const TextData data = load_text_data(text_settings(schema, s, path), tokenizer, bytes);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const TokenSummary tokens = summarise(data.tokens, squad_max_length(schema, s), s.batch_size, s.batch_tokens);
    text += fmt::format("tokens, by {} in label mode {}\n{}  {:<22} {}, ready in {:.1f} ms\n", s.tokenizer,
                        s.label_mode, summary_text(tokens), "cache", cache_text(data), ms);
    json["tokens"] = summary_json(tokens);
    json["tokens"]["label_mode"] = s.label_mode;
    json["tokens"]["cache"] = {{"file", data.cache_file.string()}, {"found", data.cache_use == CacheUse::kFound}};
  }
  print_out(s.as_json ? json_text(json, 2) + "\n" : text);
}

// The first file of text in a folder, by name; empty: none.
std::string text_file_in(const fs::path& folder) {
  std::string first;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string(), ending = entry->path().extension().string();
    if ((ending == ".json" || ending == ".jsonl") && (first.empty() || name < first)) first = name;
  }
  return first;
}

void inspect_pictures(const Schema& schema, const fs::path& folder) {
  const std::string what = fmt::format("{}, a folder, read as images", folder.string());
  refuse_groups(schema, {kOfRows, kOfSft, kOfLm, kOfSquad}, what);
  refuse_given(schema, {"tokenizer", "max_length", "cache_folder", "cache", "json"},
               fmt::format("is for text; {} is a folder, which is read as images; --job sft or lm reads its files",
                           folder.string()));
  try {
    print_out(describe_image_folder(folder));
  } catch (const UsageError& error) {
    const std::string file = text_file_in(folder);
    if (file.empty()) throw;
    throw UsageError(fmt::format("{}. For text name the file: {}", error.what(), (folder / file).string()));
  }
}

// Columns of SQuAD's files, or of what wraps them.
bool has_squad_columns(const std::vector<PlacedRow>& rows) {
  return std::ranges::any_of(rows, [](const PlacedRow& row) {
    return row.values.contains("data") || (row.values.contains("question") && row.values.contains("context"));
  });
}

// The job that reads such files, by ending and rows of the first. qa's reader also takes pipes, and says what is wrong
// with a file that is not there.
std::string job_for(const DataCommandSettings& s, const std::vector<std::string>& names) {
  if (names.empty()) return "sft";
  if (names.size() == 1 && is_there(names.front()) && !is_file(names.front())) return "qa";
  std::vector<fs::path> files;
  try {
    files = find_row_files(names, Environment::of_process());
  } catch (const UsageError&) {
    return names.size() == 1 ? "qa" : "sft";
  }
  if (row_format_of(files.front()) == RowFormat::kText) return "lm";
  try {
    const std::vector<PlacedRow> rows = first_rows_of({files.front()});
    if (has_squad_columns(rows)) return "qa";
    return RowForm::find(rows, parse_columns(s.of_jobs.train.rows.columns)).kind() == RowKind::kText ? "lm" : "sft";
  } catch (const UsageError&) {
    return "sft";  // which says what is wrong
  }
}

TrainSettings row_settings(Schema& schema, DataCommandSettings& s, const std::string& job,
                           const std::vector<std::string>& files) {
  const JobTraits& traits = job_of(job).traits;
  DeclaredSettings& declared = s.of_jobs;
  declared.train.data.train_file = join(files, ",");
  declared.train.loop.data_seed = declared.chosen_data_seed();
  std::vector<std::string> notes;
  traits.resolve(schema, declared, {}, notes);
  traits.check(schema, declared, /*needs_data=*/false);
  const RowSettings& rows = declared.train.rows;
  const bool names_rows = !rows.dataset_name.empty() || !rows.mix.empty();
  if (!files.empty() && names_rows) {
    throw UsageError(
        fmt::format("{} and --{}: give one of them", files.front(), rows.mix.empty() ? "dataset_name" : "mix"));
  }
  return declared.train;
}

void inspect_rows(Schema& schema, DataCommandSettings& s, const std::string& job,
                  const std::vector<std::string>& files) {
  const bool is_sft = job == "sft";
  refuse_groups(schema, {is_sft ? kOfLm : kOfSft, kOfSquad}, "read as " + job + " reads rows");
  if (s.tokenizer.empty()) throw UsageError("--tokenizer FOLDER is missing: a model's folder, or a tokenizer.json");
  const Environment environment = Environment::of_process();
  const fs::path place = find_model_folder(s.tokenizer, environment);
  const Tokenizer tokenizer = Tokenizer::load(place);
  const RowTokenizer of_rows{tokenizer, is_folder(place) ? place : place.parent_path()};
  const RowReport report =
      report_on_rows(job, row_settings(schema, s, job, files), of_rows, environment, cache_folder_of(s), s.num_shown);
  const bool in_colour = ::isatty(STDOUT_FILENO) != 0 && !environment.find("NO_COLOR");
  print_out(s.as_json ? json_text(report_json(report), 2) + "\n" : report_text(report, in_colour));
}

int run_data(Schema& schema, DataCommandSettings& settings) {
  const RowSettings& rows = settings.of_jobs.train.rows;
  const bool names_rows = !rows.dataset_name.empty() || !rows.mix.empty();
  if (settings.words.empty() || settings.words.front() != "inspect" || (settings.words.size() < 2 && !names_rows)) {
    throw UsageError("expected: tessera data inspect PATH [options]; `tessera data --help` shows them");
  }
  const std::vector<std::string> files(settings.words.begin() + 1, settings.words.end());
  const bool is_job_given = !settings.job.empty();
  // A folder that `datasets` saved is a folder too, but of text: the reader of SQuAD refuses it with advice.
  if (files.size() == 1 && !is_job_given && !names_rows && is_folder(files[0]) && !is_arrow_folder(files[0])) {
    inspect_pictures(schema, files[0]);
    return 0;
  }
  const std::string job = is_job_given ? settings.job : job_for(settings, files);
  if (job != "qa") {
    inspect_rows(schema, settings, job, files);
  } else {
    if (files.size() != 1) throw UsageError("--job qa reads one file of SQuAD's: tessera data inspect FILE --job qa");
    inspect_squad(schema, settings, files[0]);
  }
  return 0;
}

}  // namespace

Command data_command() {
  return with_settings<DataCommandSettings>({.name = "data",
                                             .summary = "inspect a data file or folder: what is in it, how it packs",
                                             .about = "inspect PATH: show what a data file or folder holds"},
                                            declare, run_data);
}

}  // namespace tessera
