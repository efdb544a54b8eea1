// Settings that several commands or jobs have: each is declared here once, with its preset, range and help. (no torch)
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/train_settings.h"

namespace tessera::shared {

Setting& model_name_or_path(Schema& schema, ModelSettings& model, const std::string& group);
Setting& tokenizer_name(Schema& schema, ModelSettings& model, const std::string& group);
Setting& config_name(Schema& schema, std::string* value, const std::string& group);

Setting& validation_file(Schema& schema, DataSettings& data, const std::string& group);
Setting& max_eval_samples(Schema& schema, DataSettings& data, const std::string& group);
// max_length, label_mode and subset_seed (-1: none).
void text_rows(Schema& schema, DataSettings& data, std::int64_t* subset_seed,
               const std::vector<std::string>& label_modes, const std::string& group);
Setting& max_length(Schema& schema, const std::string& name, std::int64_t* value, const std::string& group);
Setting& image_size(Schema& schema, std::int64_t* value, const std::string& group);

Setting& train_batch_size(Schema& schema, std::int64_t* value, const std::string& group);
Setting& eval_batch_size(Schema& schema, std::int64_t* value, const std::string& group);
Setting& total_batch_size(Schema& schema, std::int64_t* value, const std::string& group);
Setting& accumulation(Schema& schema, std::int64_t* value, const std::string& group);
Setting& gradient_checkpointing(Schema& schema, bool* value, const std::string& group);
void half_types(Schema& schema, bool* fp16, bool* bf16, const std::string& group);
Setting& optim(Schema& schema, std::string* value, const std::string& group);
Setting& momentum(Schema& schema, double* value, const std::string& group);

// predict_with_generate and max_new_tokens
void generation(Schema& schema, EvaluationSettings& evaluation, const std::string& group);
Setting& max_new_tokens(Schema& schema, std::int64_t* value, const std::string& group);
Setting& seed(Schema& schema, std::int64_t* value, const std::string& group);
Setting& as_json(Schema& schema, bool* value);

}  // namespace tessera::shared
