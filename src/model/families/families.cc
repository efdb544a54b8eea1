#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/text.h"
#include "model/families/family.h"
#include "model/language_model.h"

namespace tessera {
namespace {

const std::array kFamilies = {
    Family{"bloom", "BloomForCausalLM", read_bloom},       Family{"gemma3_text", "Gemma3ForCausalLM", read_gemma3},
    Family{"gpt2", "GPT2LMHeadModel", read_gpt2},          Family{"llama", "LlamaForCausalLM", read_llama},
    Family{"mistral", "MistralForCausalLM", read_mistral}, Family{"olmo2", "Olmo2ForCausalLM", read_olmo2},
    Family{"olmo3", "Olmo3ForCausalLM", read_olmo3},       Family{"phi3", "Phi3ForCausalLM", read_phi3},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2},       Family{"qwen3", "Qwen3ForCausalLM", read_qwen3},
    Family{"smollm3", "SmolLM3ForCausalLM", read_smollm3}, Family{"tessera-gpt", nullptr, read_tessera_gpt},
};

// What no family supports.
void check_rest(const JsonReader& config) {
  refuse_if_set(config, {"quantization_config", "per_layer_config"});
  if (!config.json().contains("is_causal")) return;
  const JsonReader causal = config.at("is_causal");
  if (causal.json() != Json(true)) causal.refuse_value("true: Tessera's tokens never see those after them");
}

// A list with one entry per layer, cut or repeated.
void fit_list(Json& config, const char* key, std::int64_t num_layers) {
  const auto list = config.find(key);
  if (list == config.end() || !list->is_array() || list->empty()) return;
  Json fitted = Json::array();
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_layers); ++i) fitted.push_back((*list)[i % list->size()]);
  config[key] = std::move(fitted);
}

}  // namespace

const Family& family_of(const JsonReader& config) {
  const std::string type = config.text("model_type");
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    names.emplace_back(family.model_type);
  }
  config.at("model_type").refuse_value("one of " + join(names, ", "));
}

std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin,
                                                   const at::TensorOptions& options) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  const Family& family = family_of(reader);
  check_rest(reader);
  const DecoderDescription decoder = family.read(reader);
  Json kept = config;
  // A folder of the model without its head names another class.
  if (family.architecture != nullptr) kept["architectures"] = {family.architecture};
  return std::make_shared<LanguageModel>(decoder, std::move(kept), options);
}

Json with_num_blocks(Json config, std::int64_t num_blocks) {
  for (const char* key : {"n_layer", "num_hidden_layers", "num_layers"}) {
    if (config.contains(key)) config[key] = num_blocks;
  }
  for (const char* key : {"layer_types", "no_rope_layers"}) fit_list(config, key, num_blocks);
  return config;
}

}  // namespace tessera
