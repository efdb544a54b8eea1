// lm: train a text model on plain text, to predict each next token. Names of settings are those of transformers'
// run_clm.
#include <memory>
#include <utility>

#include "core/error.h"
#include "data/text/document_encoder.h"
#include "jobs/row_files.h"
#include "jobs/row_settings.h"
#include "jobs/text_model.h"
#include "settings/load.h"

namespace tessera {
namespace {

void declare_lm_data(Schema& schema, DeclaredSettings& s) {
  declare_row_files(schema, s);
  declare_lm_rows(schema, s);
  s.train.evaluation.reports_perplexity = true;
}

void resolve_lm(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  RowSettings& rows = s.train.rows;
  rows.packing = rows.attention_across_documents ? Packing::kWrapped : Packing::kBestFit;
  rows.eval_packing = rows.packing;
  if (rows.attention_across_documents && !schema.at("sample_by").is_set()) rows.text_unit = TextUnit::kLine;
  if (!schema.at("dataset_test_split").is_set()) rows.test_split = "validation";
  resolve_row_files(schema, s, how, notes);
}

void check_lm(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  check_text_model(schema, s, needs_data);
  check_row_files(schema, s, needs_data);
  if (s.train.data.max_length < 2) {
    throw UsageError(shown(schema, "max_length") + ": expected at least 2, as a row's first token predicts the second");
  }
}

std::unique_ptr<OpenJob> open_lm(World& world, const LoadedTrainSettings& run,
                                 const std::optional<std::filesystem::path>& checkpoint) {
  return open_row_job(world, run, checkpoint, lm_encoding);
}

}  // namespace

void declare_lm_rows(Schema& schema, DeclaredSettings& s) {
  RowSettings& rows = s.train.rows;
  schema.word("sample_by", &rows.text_unit, {"document", "line"},
              "what a .txt file holds: a document, or one per line, which is the default with "
              "--attention_across_documents, as in run_clm",
              {.preset = "document"});
  schema.boolean("append_eos_token", &rows.appends_end, "end each document by the tokenizer's end token",
                 {.preset = "true"});
  schema.boolean("attention_across_documents", &rows.attention_across_documents,
                 "put all documents end to end and cut them wherever max_length ends, as run_clm does; else each "
                 "document sees only itself");
  schema.real("validation_split_percentage", &rows.validation_percent,
              "share of the rows to evaluate on, where evaluations are asked for and no other rows are named",
              {.preset = "5", .at_least = 0, .at_most = 99});
}

ChooseEncoding lm_encoding(const TrainSettings& settings, const RowTokenizer& tokenizer, const Environment&) {
  const RowSettings& rows = settings.rows;
  const auto encoder = std::make_shared<const DocumentEncoder>(
      tokenizer.tokenizer, DocumentOptions{.max_length = rows.attention_across_documents ? 0 : settings.data.max_length,
                                           .ends_documents = rows.appends_end,
                                           .column = rows.text_column});
  const std::string kind = rows.attention_across_documents ? "documents" : "pieces of documents";
  return [encoder, kind](const std::vector<PlacedRow>&) {
    return RowEncoding{[encoder](const PlacedRow& row) { return encoder->encode(row.values); }, encoder->description(),
                       kind};
  };
}

Job lm() {
  JobTraits traits;
  traits.name = "lm";
  traits.summary = "train a text model on plain text";
  traits.example = "--model_name_or_path Qwen/Qwen2.5-0.5B --train_file 'books/*.txt' --bf16";
  traits.presets.batch_size = "8";
  traits.presets.learning_rate = "5e-5";
  traits.presets.weight_decay = "0";
  traits.presets.max_grad_norm = "1";
  traits.presets.optim = "adamw_torch_fused";
  traits.presets.save_strategy = "epoch";
  traits.presets.output_dir = "./lm-trained";
  traits.metrics = {"loss", "perplexity"};
  traits.foreign = lm_arguments();
  traits.declare_model = declare_text_model;
  traits.declare_data = declare_lm_data;
  traits.evaluation_setting = "--validation_file";
  traits.has_evaluation_data = has_evaluation_rows;
  traits.resolve = resolve_lm;
  traits.check = check_lm;
  return {traits, open_lm};
}

}  // namespace tessera
