#include "jobs/row_settings.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "data/loading/mixed_rows.h"
#include "settings/load.h"

namespace tessera {

void declare_row_files(Schema& schema, DeclaredSettings& s) {
  schema.text("train_file", &s.train.data.train_file,
              "rows to train on: files, folders or patterns, separated by commas (.json, .jsonl, .csv, .txt, .parquet, "
              ".arrow; also .gz)");
  schema.text("validation_file", &s.train.data.validation_file, "rows to evaluate on, named as those to train on");
  declare_rows(schema, s);
  schema.integer("subset_seed", &s.subset_seed, "choose rows as datasets' shuffle(seed) does; -1: the first ones",
                 {.preset = "-1", .at_least = -1});
}

void declare_rows(Schema& schema, DeclaredSettings& s) {
  RowSettings& rows = s.train.rows;
  schema.text("dataset_name", &rows.dataset_name,
              "a folder of files, or a data set's name on the hub that the local cache holds, with its splits");
  schema.text("dataset_train_split", &rows.train_split, "split of --dataset_name to train on", {.preset = "train"});
  schema.text("dataset_test_split", &rows.test_split,
              "split of --dataset_name to evaluate on, where that is asked for; none: test, of lm validation");
  schema.text("mix", &rows.mix, "files drawn by weight, in place of --train_file: a.jsonl=0.7,b.jsonl=0.3");
  schema.integer("max_length", &s.train.data.max_length,
                 "tokens per row: sft cuts longer ones, lm cuts documents into rows of it and packs them",
                 {.preset = "1024", .at_least = 1, .at_most = 1 << 24, .aliases = {"max_seq_length", "block_size"}});
  schema.text("text_column_name", &rows.text_column, "the column of plain text, where rows have several",
              {.preset = "text", .aliases = {"dataset_text_field"}});
}

void check_row_files(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  const RowSettings& rows = s.train.rows;
  std::vector<std::string> given;
  for (const char* name : {"train_file", "dataset_name", "mix"}) {
    if (schema.has(name) && !schema.at(name).text().empty()) given.push_back(shown(schema, name));
  }
  if (given.size() > 1) throw UsageError(fmt::format("{}: give one of them", join(given, " and ")));
  if (given.empty() && needs_data) {
    throw UsageError("--train_file FILE is missing; or --dataset_name FOLDER, or --mix a.jsonl=0.7,b.jsonl=0.3");
  }
  if (!rows.mix.empty()) parse_mix(rows.mix);
}

void resolve_row_files(Schema& schema, DeclaredSettings& s, const Resolution&, std::vector<std::string>&) {
  RowSettings& rows = s.train.rows;
  if (rows.test_split.empty()) rows.test_split = "test";
  // `tessera data inspect` has no evaluations: there whoever names the rows asks for them.
  const auto is_set = [&](const char* name) { return schema.has(name) && schema.at(name).is_set(); };
  const bool wants_strategy = is_set("eval_strategy") && schema.at("eval_strategy").text() != "no";
  const bool is_asked = schema.has("eval_strategy")
                            ? wants_strategy || s.do_eval || s.train.evaluation.on_start
                            : is_set("dataset_test_split") || is_set("validation_split_percentage");
  const bool has_file = !s.train.data.validation_file.empty();
  if (!is_asked || has_file) rows.validation_percent = 0;
  const bool means_a_share = is_set("validation_split_percentage") && !is_set("dataset_test_split");
  if (!is_asked || has_file || rows.dataset_name.empty() || means_a_share) rows.test_split.clear();
  if (is_set("dataset_test_split")) rows.validation_percent = 0;
}

bool has_evaluation_rows(const TrainSettings& settings) {
  return !settings.data.validation_file.empty() || !settings.rows.test_split.empty() ||
         settings.rows.validation_percent > 0;
}

}  // namespace tessera
