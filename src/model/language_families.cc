// The families of language models, by the model_type of their config.json.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/json_reader.h"
#include "core/text.h"
#include "model/bloom.h"
#include "model/gpt.h"
#include "model/language_model.h"
#include "model/text_step_memory.h"

namespace tessera {
namespace {

struct Family {
  const char* model_type;
  std::shared_ptr<LanguageModel> (*make)(const Json& config, const std::string& origin,
                                         const at::TensorOptions& options);
  std::unique_ptr<StepMemory> (*step_memory)(const Json& config, const std::string& origin, const StepShape& shape);
};

template <typename Model, typename Config>
std::shared_ptr<LanguageModel> make(const Json& config, const std::string& origin, const at::TensorOptions& options) {
  return std::make_shared<Model>(Config::from_json(config, origin), options);
}

constexpr std::array kFamilies = {
    Family{"bloom", make<Bloom, BloomConfig>, bloom_step_memory},
    Family{"tessera-gpt", make<Gpt, GptConfig>, gpt_step_memory},
};

const Family& family_of(const Json& config, const std::string& origin) {
  const JsonSource source{&config, origin};
  const JsonReader reader(source);
  const std::string type = reader.text({"model_type"});
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    names.emplace_back(family.model_type);
  }
  reader.at("model_type").refuse_value(join(names, " or "));
}

}  // namespace

std::shared_ptr<LanguageModel> make_language_model(const Json& config, const std::string& origin,
                                                   const at::TensorOptions& options) {
  return family_of(config, origin).make(config, origin, options);
}

std::unique_ptr<StepMemory> language_step_memory(const Json& config, const std::string& origin,
                                                 const StepShape& shape) {
  return family_of(config, origin).step_memory(config, origin, shape);
}

}  // namespace tessera
