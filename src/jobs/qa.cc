// qa: fine-tune a text model of any family on SQuAD's questions and answers. bloom-qa: the same with the workshops'
// presets for BLOOM.
#include "jobs/qa_files.h"

namespace tessera {
namespace {

std::unique_ptr<OpenJob> open_any_model(World& world, const LoadedTrainSettings& run,
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
  traits.example = "--model_name_or_path Qwen/Qwen2.5-0.5B --train_file train-v1.1.json --bf16";
  traits.presets.batch_size = "8";
  traits.presets.weight_decay = "0";
  traits.presets.output_dir = "./qa-finetuned";
  return {traits, open_any_model};
}

// The batch is that of the workshops' ZeRO runs; what they leave open is transformers' default.
Job bloom_qa() {
  JobTraits traits = text_model_traits();
  traits.name = "bloom-qa";
  traits.summary = "fine-tune BLOOM on questions and answers";
  traits.example = "--model_name_or_path bigscience/bloom-560m --train_file train-v1.1.json --bf16";
  traits.presets.batch_size = traits.presets.accumulation = "4";
  traits.presets.eval_batch_size = "4";
  traits.presets.output_dir = "./bloom-qa-finetuned";
  return {traits, open_any_model};
}

}  // namespace tessera
