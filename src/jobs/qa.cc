// qa: fine-tune a text model of any family on SQuAD's questions and answers. bloom-qa: the same with the workshops'
// presets for BLOOM.
#include <fmt/format.h>

#include "core/error.h"
#include "jobs/qa_files.h"
#include "settings/load.h"
#include "settings/shared.h"

namespace tessera {
namespace {

void declare_text_model(Schema& schema, DeclaredSettings& s) {
  ModelSettings& model = s.train.model;
  shared::model_name_or_path(schema, model, {.environment = {"MODEL_NAME"}});
  schema.text("config_name", &model.config_name, "config.json of a model from scratch");
  shared::tokenizer_name(schema, model);
}

void check_text_model(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  if (!needs_data) return;
  const ModelSettings& model = s.train.model;
  if (model.name_or_path.empty()) {
    require(model.config_name, "--model_name_or_path FOLDER, or --config_name FILE for a model from scratch,");
    require(model.tokenizer_name, "--tokenizer_name PATH, which a model from scratch needs,");
  } else if (!model.config_name.empty()) {
    throw UsageError(fmt::format("{} and {} exclude each other: the folder has a config.json of its own",
                                 shown(schema, "model_name_or_path"), shown(schema, "config_name")));
  }
}

std::unique_ptr<OpenJob> open_text_model(World& world, const LoadedTrainSettings& run,
                                         const std::optional<std::filesystem::path>& checkpoint) {
  return open_qa_job(world, run, checkpoint);
}

JobTraits text_model_traits() {
  JobTraits traits = qa_traits();
  traits.declare_model = declare_text_model;
  traits.check = check_text_model;
  return traits;
}

}  // namespace

// Presets are transformers' defaults.
Job qa() {
  JobTraits traits = text_model_traits();
  traits.name = "qa";
  traits.summary = "fine-tune a text model on questions and answers";
  traits.presets.batch_size = "8";
  traits.presets.weight_decay = "0";
  traits.presets.output_dir = "./qa-finetuned";
  return {traits, open_text_model};
}

// The batch is that of the workshops' ZeRO runs; what they leave open is transformers' default.
Job bloom_qa() {
  JobTraits traits = text_model_traits();
  traits.name = "bloom-qa";
  traits.summary = "fine-tune BLOOM on questions and answers";
  traits.presets.batch_size = traits.presets.accumulation = "4";
  traits.presets.eval_batch_size = "4";
  traits.presets.output_dir = "./bloom-qa-finetuned";
  return {traits, open_text_model};
}

}  // namespace tessera
