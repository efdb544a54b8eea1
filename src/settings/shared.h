// Settings that several commands or jobs have: each is declared here once, in the group that is open. `more` adds a
// caller's own names, variables and preset. (no torch)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/train_settings.h"

namespace tessera::shared {

void model_name_or_path(Schema& schema, ModelSettings& model, SettingTraits more);
void tokenizer_name(Schema& schema, ModelSettings& model, SettingTraits more = {});

void validation_file(Schema& schema, DataSettings& data);
void max_eval_samples(Schema& schema, DataSettings& data);
// max_length, label_mode and subset_seed (-1: none).
void text_rows(Schema& schema, DataSettings& data, std::int64_t* subset_seed, std::vector<std::string> label_modes);
void generation(Schema& schema, EvaluationSettings& evaluation);  // predict_with_generate and max_new_tokens

// seed and data_seed (-1: seed).
void seeds(Schema& schema, std::int64_t* seed, std::int64_t* data_seed);
void train_batch_size(Schema& schema, std::int64_t* value, SettingTraits more);
void eval_batch_size(Schema& schema, std::int64_t* value, SettingTraits more);
void total_batch_size(Schema& schema, std::int64_t* value);
void accumulation(Schema& schema, std::int64_t* value, SettingTraits more);
void gradient_checkpointing(Schema& schema, bool* value);
void half_types(Schema& schema, bool* fp16, bool* bf16);
void optim(Schema& schema, std::string* value, SettingTraits more);
void momentum(Schema& schema, double* value, const std::string& preset);

}  // namespace tessera::shared
