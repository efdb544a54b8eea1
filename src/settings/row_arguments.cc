// What trl's and run_clm's arguments become in sft and lm, where they are no settings.
#include "settings/declared.h"

namespace tessera {

namespace {

using A = ForeignArgument::Form;
using Arguments = std::vector<ForeignArgument>;

constexpr const char* kFetchBefore = "nothing is downloaded: fetch models and data sets before";
constexpr const char* kNoPadding = "nothing is padded";
constexpr const char* kNoQuantising = "training from quantised weights is not built: give --bf16 for less memory";
constexpr const char* kOwnConfiguration =
    "name that configuration's files: --train_file, or its folder by --dataset_name";
constexpr const char* kOwnType = "give --bf16 or --fp16: they compute in it and keep the weights in float32";
constexpr const char* kNoPreferences =
    "preference training (DPO) is not built; to train on the preferred answers: sft with --columns completion=chosen "
    "beside a prompt, or messages=chosen";
constexpr const char* kAllCounts = "every token of plain text counts: `tessera train sft` counts parts of a row";

// Of both jobs. Some are among the words of other trainers, which every job knows: hugging_face.cc.
const Arguments kShared = {
    // trl's ModelConfig, and what SFTConfig says of the model
    {"model_revision", A::kText, "name the folder of that revision", "main"},
    {"dtype", A::kText, kOwnType, "auto|float32"},
    {"model_init_kwargs", A::kText, "give settings instead, such as --bf16", "{}|"},
    {"router_aux_loss_coef", A::kNumber, "models with experts are not built", "0"},
    {"bnb_4bit_quant_type", A::kText, "there are no quantised weights without --load_in_4bit"},
    {"use_bnb_nested_quant", A::kBool, kNoQuantising, "false"},
    {"bnb_4bit_quant_storage", A::kText, "there are no quantised weights without --load_in_4bit"},
    // Its data
    {"dataset_config", A::kText, kOwnConfiguration, "default|"},
    {"dataset_streaming", A::kBool, "files may be larger than memory anyway"},
    {"streaming", A::kBool, "files may be larger than memory anyway"},
    {"ignore_bias_buffers", A::kBool, "models have no such buffers"},
    {"datasets", A::kText, "give --mix a.jsonl=0.7,b.jsonl=0.3", ""},
    {"test_split_size", A::kNumber, "name the rows to evaluate on: --validation_file, or --dataset_test_split", ""},
    {"dataset_kwargs", A::kText, "rows are prepared in one way: `tessera data inspect` shows it", "{}|"},
    {"dataset_num_proc", A::kNumber, "all cores tokenise"},
    {"shuffle_dataset", A::kBool, "every epoch is shuffled, unless --no_shuffle is given"},
    {"eos_token", A::kText, "the tokenizer's files name the end token: set eos_token in tokenizer_config.json", ""},
    {"pad_token", A::kText, kNoPadding},
    {"padding_free", A::kBool, kNoPadding},
    {"pad_to_multiple_of", A::kText, kNoPadding},
    {"truncation_mode", A::kText, "longer rows lose their end", "keep_start"},
    {"activation_offloading", A::kBool, "give --gradient_checkpointing to keep fewer activations", "false"},
    // run_clm
    {"model_type", A::kText, "config.json names the family: --config_name FILE", ""},
    {"config_overrides", A::kText, "write the values into the file of --config_name", ""},
    {"cache_dir", A::kText, "set HF_HUB_CACHE to Hugging Face's cache, or name the model's folder", ""},
    {"token", A::kText, kFetchBefore, nullptr, true},
    {"use_auth_token", A::kText, kFetchBefore, nullptr, true},
    {"low_cpu_mem_usage", A::kBool, "weights are read straight into their place"},
    {"dataset_config_name", A::kText, kOwnConfiguration, "default|"},
    {"overwrite_cache", A::kBool, "the token cache notices every change"},
    {"preprocessing_num_workers", A::kNumber, "all cores tokenise"},
    {"keep_linebreaks", A::kBool, "text keeps its line breaks", "true"},
    // trl's DPOConfig, today's and earlier ones
    {"disable_dropout", A::kBool, kNoPreferences, "false"},
    {"precompute_ref_log_probs", A::kBool, kNoPreferences, "false"},
    {"precompute_ref_batch_size", A::kText, kNoPreferences, ""},
    {"loss_weights", A::kText, kNoPreferences, ""},
    {"ld_alpha", A::kText, kNoPreferences, ""},
    {"f_divergence_type", A::kText, kNoPreferences, ""},
    {"f_alpha_divergence_coef", A::kText, kNoPreferences, ""},
    {"label_smoothing", A::kText, kNoPreferences, ""},
    {"beta", A::kText, kNoPreferences, ""},
    {"use_weighting", A::kBool, kNoPreferences, "false"},
    {"discopop_tau", A::kText, kNoPreferences, ""},
    {"sync_ref_model", A::kBool, kNoPreferences, "false"},
    {"ref_model_mixup_alpha", A::kText, kNoPreferences, ""},
    {"ref_model_sync_steps", A::kText, kNoPreferences, ""},
    {"ref_model", A::kText, kNoPreferences, ""},
    {"reference_free", A::kBool, kNoPreferences, "false"},
    {"rpo_alpha", A::kText, kNoPreferences, ""},
    {"max_prompt_length", A::kText, kNoPreferences, ""},
    {"max_completion_length", A::kText, kNoPreferences, ""},
    {"loss_type", A::kText,
     "the loss is the negative log-likelihood (nll); dft is not built, and neither are preference losses (DPO)",
     "nll|chunked_nll"},
};

Arguments with_shared(const Arguments& own) {
  Arguments all = kShared;
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

}  // namespace

std::vector<ForeignArgument> sft_arguments() {
  return with_shared({
      {"validation_split_percentage", A::kNumber,
       "name the rows to evaluate on: --validation_file, or --dataset_test_split", "0"},
  });
}

std::vector<ForeignArgument> lm_arguments() {
  return with_shared({
      {"packing", A::kBool, "lm always packs", "true"},
      {"eval_packing", A::kBool, "lm always packs", "true"},
      {"packing_strategy", A::kText,
       "documents are cut at --max_length and their parts packed; --attention_across_documents puts them end to end",
       "bfd_split"},
      {"completion_only_loss", A::kBool, kAllCounts, "false"},
      {"assistant_only_loss", A::kBool, kAllCounts, "false"},
      {"chat_template_path", A::kText, "plain text has no template: `tessera train sft` reads conversations", ""},
  });
}

}  // namespace tessera
