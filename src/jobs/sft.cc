// sft: fine-tune a text model on instructions, chats, or prompts with completions. Names and defaults of settings are
// those of TRL's ScriptArguments and SFTConfig.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "data/rows/row_form.h"
#include "data/templates/find_chat_template.h"
#include "data/text/sft_encoder.h"
#include "jobs/row_files.h"
#include "jobs/row_settings.h"
#include "jobs/text_model.h"
#include "settings/load.h"
#include "weights/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void declare_sft_data(Schema& schema, DeclaredSettings& s) {
  declare_row_files(schema, s);
  declare_sft_rows(schema, s);
}

void resolve_sft(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  RowSettings& rows = s.train.rows;
  const auto strategy = static_cast<Packing>(static_cast<int>(Packing::kBestFit) + static_cast<int>(s.packing));
  rows.packing = s.packs ? strategy : Packing::kNone;
  const bool packs_evaluation = schema.at("eval_packing").is_set() ? s.packs_evaluation : s.packs;
  rows.eval_packing = packs_evaluation ? strategy : Packing::kNone;
  if (rows.columns.empty() && rows.text_column != "text") {
    follow(schema, "columns", "text=" + rows.text_column, "text_column_name");
  }
  resolve_row_files(schema, s, how, notes);
}

void check_sft(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  check_text_model(schema, s, needs_data);
  check_row_files(schema, s, needs_data);
  const RowSettings& rows = s.train.rows;
  parse_columns(rows.columns);
  if (rows.packing != rows.eval_packing && (rows.packing == Packing::kSplit || rows.packing == Packing::kWrapped)) {
    throw UsageError(fmt::format("{}: only with --packing_strategy bfd, found {}", shown(schema, "eval_packing"),
                                 shown(schema, "packing_strategy")));
  }
}

Json tokenizer_config_in(const fs::path& folder) {
  const fs::path file = folder / "tokenizer_config.json";
  return is_there(file) ? read_json_file(file) : Json::object();
}

std::optional<FoundTemplate> template_of(const TrainSettings& settings, const RowTokenizer& tokenizer,
                                         const Environment& environment) {
  const std::string& path = settings.rows.chat_template_path;
  if (path.empty()) return find_chat_template(tokenizer.folder, tokenizer_config_in(tokenizer.folder));
  if (is_file(path)) return FoundTemplate{read_file(path), path};
  const std::string setting = "--chat_template_path " + path;
  try {
    const fs::path folder = find_model_folder(path, environment);
    if (auto found = find_chat_template(folder, tokenizer_config_in(folder))) return found;
  } catch (const Error& error) {
    throw error.in_context(setting);
  }
  throw UsageError(setting + ": it has no chat template");
}

std::unique_ptr<OpenJob> open_sft(World& world, const LoadedTrainSettings& run,
                                  const std::optional<fs::path>& checkpoint) {
  return open_row_job(world, run, checkpoint, sft_encoding);
}

}  // namespace

void declare_sft_rows(Schema& schema, DeclaredSettings& s) {
  RowSettings& rows = s.train.rows;
  schema.text("columns", &rows.columns, "the files' names of columns: prompt=question,completion=answer");
  schema.boolean("completion_only_loss", &rows.completion_only,
                 "count completions alone, not their prompts; of rows without a prompt everything counts",
                 {.preset = "true"});
  schema.boolean("assistant_only_loss", &rows.assistant_only, "of conversations, count what the assistant says alone");
  schema.text("chat_template_path", &rows.chat_template_path,
              "a Jinja file, or a folder whose tokenizer has a chat template, in place of the model's");
  schema.boolean("packing", &s.packs, "put several rows into one of max_length tokens; none sees another");
  schema.word(
      "packing_strategy", &s.packing, {"bfd", "bfd_split", "wrapped"},
      "bfd: best fit, longer rows are cut; bfd_split: what is cut off goes into other rows; wrapped: rows are cut "
      "wherever max_length ends",
      {.preset = "bfd"});
  schema.boolean("eval_packing", &s.packs_evaluation, "the same for evaluations; none: as in training");
}

ChooseEncoding sft_encoding(const TrainSettings& settings, const RowTokenizer& tokenizer,
                            const Environment& environment) {
  const RowSettings& rows = settings.rows;
  const bool cuts = rows.packing == Packing::kNone || rows.packing == Packing::kBestFit;
  const SftOptions options = {.max_length = settings.data.max_length,
                              .overflow = cuts                              ? SftOverflow::kCut
                                          : rows.packing == Packing::kSplit ? SftOverflow::kSplit
                                                                            : SftOverflow::kKeep,
                              .completion_only = rows.completion_only,
                              .assistant_only = rows.assistant_only};
  const auto encoder = std::make_shared<const SftEncoder>(
      tokenizer.tokenizer, template_of(settings, tokenizer, environment),
      special_token_texts(tokenizer.folder, tokenizer_config_in(tokenizer.folder)), options);
  return [encoder, columns = rows.columns](const std::vector<PlacedRow>& first_rows) {
    const auto form = std::make_shared<const RowForm>(RowForm::find(first_rows, parse_columns(columns)));
    return RowEncoding{[form, encoder](const PlacedRow& row) { return encoder->encode(form->read(row.values)); },
                       encoder->description() + " " + form->text() + " " + columns, form->text()};
  };
}

Job sft() {
  JobTraits traits;
  traits.name = "sft";
  traits.summary = "fine-tune a text model on instructions, chats, or prompts with completions";
  traits.example = "--model_name_or_path Qwen/Qwen2.5-0.5B --train_file chats.jsonl --bf16";
  traits.presets.batch_size = "8";
  traits.presets.learning_rate = "2e-5";
  traits.presets.weight_decay = "0";
  traits.presets.max_grad_norm = "1";
  traits.presets.optim = "adamw_torch_fused";
  traits.presets.save_strategy = "epoch";
  traits.presets.logging_steps = "10";
  traits.presets.output_dir = "./sft-finetuned";
  traits.metrics = {"loss"};
  traits.foreign = sft_arguments();
  traits.declare_model = declare_text_model;
  traits.declare_data = declare_sft_data;
  traits.evaluation_setting = "--validation_file";
  traits.has_evaluation_data = has_evaluation_rows;
  traits.resolve = resolve_sft;
  traits.check = check_sft;
  return {traits, open_sft};
}

}  // namespace tessera
