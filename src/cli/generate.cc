// `tessera generate`: text continued with a model folder.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <optional>

#include "cli/commands.h"
#include "comm/gpu_support.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/log.h"
#include "core/output.h"
#include "core/text.h"
#include "data/tokenizer/tokenizer.h"
#include "model/generation.h"
#include "settings/shared.h"
#include "weights/load_weights.h"

namespace tessera {
namespace {

struct GenerateSettings {
  ModelSettings model;
  std::string prompt, prompt_ids, device, dtype;
  std::int64_t seed = 0;
  bool from_ids = false, as_json = false, with_logits = false;
  GenerationOptions generation;
};

void declare(Schema& schema, GenerateSettings& s) {
  schema.group("What is continued");
  shared::model_name_or_path(schema, s.model, {.aliases = {"model"}});
  shared::tokenizer_name(schema, s.model, {.aliases = {"tokenizer"}});
  schema.text("prompt", &s.prompt, "the text to continue");
  schema.text("prompt_ids", &s.prompt_ids, "its token ids instead, as a JSON array; needs no tokenizer: \"[1,2]\"");
  schema.group("How");
  schema.integer("max_new_tokens", &s.generation.max_new_tokens,
                 "generate at most this many tokens; fewer if the model ends the text",
                 {.preset = "20", .at_least = 1, .at_most = 1'000'000});
  schema.boolean("do_sample", &s.generation.sampling.do_sample,
                 "sample tokens by their probabilities instead of choosing the best");
  schema.real("temperature", &s.generation.sampling.temperature, "divides the logits; with --do_sample",
              {.preset = "1", .at_least = 1e-4, .at_most = 1e4});
  schema.integer("top_k", &s.generation.sampling.top_k, "sample from the k best tokens; 0: from all; with --do_sample",
                 {.preset = "50", .at_least = 0});
  schema.real("top_p", &s.generation.sampling.top_p,
              "sample from the fewest tokens whose probabilities sum to at least this; with --do_sample",
              {.preset = "1", .at_least = 1e-6, .at_most = 1});
  schema.integer("seed", &s.seed, "seed of the sampling", {.preset = "0", .at_least = 0, .at_most = 4294967295.0});
  schema.text("device", &s.device, "where to compute; auto: a GPU if there is one",
              {.preset = "auto", .choices = {"auto", "cpu", "cuda"}});
  schema.text("dtype", &s.dtype, "type of weights and computation",
              {.preset = "float32",
               .choices = {"float32", "bfloat16", "float16", "fp32", "bf16", "fp16"},
               .aliases = {"torch_dtype"}});
  schema.group("Output");
  schema.boolean("json", &s.as_json,
                 "print one object: ids and text of the prompt and what follows it, num_prompt_ids");
  schema.boolean("logits", &s.with_logits, "add the logits after the prompt's last token; with --json");
}

void check(const Schema& schema, GenerateSettings& s) {
  if (s.model.name_or_path.empty()) throw UsageError("tessera generate: --model FOLDER is missing");
  if (schema.at("prompt").is_set() == schema.at("prompt_ids").is_set()) {
    throw UsageError("tessera generate: give either --prompt TEXT or --prompt_ids \"[1,2]\"");
  }
  s.from_ids = schema.at("prompt_ids").is_set();
  if (s.with_logits && !s.as_json) throw UsageError("--logits: only with --json");
}

void check_sampling_flags(const Schema& schema, const GenerateSettings& s) {
  for (const char* name : {"temperature", "top_k", "top_p"}) {
    const Setting& setting = schema.at(name);
    if (setting.source() == Source::kCommandLine && !s.generation.sampling.do_sample) {
      throw UsageError(
          fmt::format("--{} {}: only with --do_sample; without it the best token is chosen", name, setting.text()));
    }
  }
}

// Warns about options of the folder's generation_config.json that are not supported.
void warn_of_the_rest(const Json& own, const std::string& origin) {
  static const Json neutral = parse_json(R"({"num_beams": 1, "num_beam_groups": 1,
      "repetition_penalty": 1.0, "penalty_alpha": 0.0, "no_repeat_ngram_size": 0, "min_p": 0.0, "typical_p": 1.0,
      "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "num_return_sequences": 1, "max_length": 20, "min_length": 0, "min_new_tokens": 0,
      "forced_bos_token_id": null, "forced_eos_token_id": null, "bad_words_ids": null, "stop_strings": null,
      "suppress_tokens": null})",
                                         "the defaults");
  for (const auto& [name, value] : neutral.items()) {
    if (!own.contains(name) || own.at(name).is_null() || own.at(name) == value) continue;
    log_warn(
        "{}: \"{}\": {} is not supported: Tessera chooses the best token, or samples by temperature, top_k and top_p, "
        "at most max_new_tokens times",
        origin, name, printable(own.at(name).dump()));
  }
}

// The command line overrides what the folder says about generation, as in transformers' `generate`.
void read_generation_config(Schema& schema, const ModelFolder& folder, GenerateSettings& s) {
  const std::string config_origin = (folder.path() / "config.json").string();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  s.generation.eos_ids = JsonReader(JsonSource{&folder.config(), config_origin}).integers("eos_token_id", 0, kMax);
  const std::optional<Json> own = folder.generation_config();
  if (!own) return;
  const std::string origin = (folder.path() / "generation_config.json").string();
  if (own->contains("eos_token_id"))
    s.generation.eos_ids = JsonReader(JsonSource{&*own, origin}).integers("eos_token_id", 0, kMax);
  Json known = Json::object();
  for (const char* name : {"max_new_tokens", "do_sample", "temperature", "top_k", "top_p"}) {
    if (own->contains(name) && !own->at(name).is_null()) known[name] = own->at(name);
  }
  if (own->contains("top_k") && own->at("top_k").is_null()) known["top_k"] = 0;  // transformers: null is from all
  const bool is_asked = schema.at("do_sample").is_set();
  if (!(is_asked ? s.generation.sampling.do_sample : known.value("do_sample", Json()) == Json(true))) {
    // Without effect, so any value will do: some files say "temperature": 0.
    for (const char* name : {"temperature", "top_k", "top_p"}) known.erase(name);
  }
  schema.read_json(known, origin);
  Json rest = *own;
  if (schema.at("max_new_tokens").is_set()) rest.erase("max_length");  // it wins in transformers, too
  warn_of_the_rest(rest, origin);
}

std::optional<Tokenizer> load_tokenizer(const GenerateSettings& s, const ModelFolder& folder) {
  if (!s.model.tokenizer_name.empty())
    return Tokenizer::load(find_model_folder(s.model.tokenizer_name, Environment::of_process()));
  const bool has_own = !tokenizer_files_in(folder.path()).empty();
  if (!s.from_ids && !has_own) {
    throw UsageError(fmt::format("{} has no tokenizer: give --tokenizer PATH, or --prompt_ids instead of --prompt",
                                 folder.path().string()));
  }
  if (!s.from_ids) return Tokenizer::load(folder.path());
  // Only for the text: ids alone need none.
  if (!has_own) return std::nullopt;
  try {
    return Tokenizer::load(folder.path());
  } catch (const Error& error) {
    log_warn("no text, only ids: {}", error.what());
    return std::nullopt;
  }
}

TokenIds prompt_of(const GenerateSettings& s, const std::optional<Tokenizer>& tokenizer) {
  if (!s.from_ids) {
    const auto ids = tokenizer->encode(s.prompt);
    if (ids.empty()) throw UsageError("--prompt: the tokenizer finds no tokens in it; give some text");
    return {ids.begin(), ids.end()};
  }
  const Json list = parse_json(s.prompt_ids, "--prompt_ids");
  if (!list.is_array() || list.empty()) throw UsageError("--prompt_ids: expected a JSON array of token ids, \"[1,2]\"");
  TokenIds ids;
  const JsonSource source{&list, "--prompt_ids"};
  for (const JsonReader& id : JsonReader(source).items()) {
    ids.push_back(id.as_integer(0, std::numeric_limits<std::int32_t>::max()));
  }
  return ids;
}

std::string text_of(const Tokenizer& tokenizer, const TokenIds& ids) {
  return tokenizer.decode(std::vector<std::int32_t>(ids.begin(), ids.end()), /*skip_special_tokens=*/true);
}

std::vector<float> logits_after(LanguageModel& model, const TokenIds& prompt) {
  const at::NoGradGuard no_grad;
  UnitRunner runner;
  const PackedBatch batch = pack_sequences({prompt}, model.device());
  const at::Tensor last = at::tensor({static_cast<std::int64_t>(prompt.size()) - 1}, at::kLong).to(model.device());
  const at::Tensor logits = model.logits(batch, runner, last).to(at::kCPU, at::kFloat).contiguous();
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
}

// "cpu", "cuda", or "auto": the GPU if there is one.
at::Device choose_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const GpuSupport* gpus = gpu_support();
  if (gpus == nullptr || gpus->num_gpus() == 0) {
    if (name == "auto" && !gpus_are_unfit()) return at::kCPU;
    throw UsageError(
        fmt::format("--device {}: there is no GPU to use here ({}); give --device cpu", name, no_gpu_reason()));
  }
  gpus->set_device(0);
  return {at::kCUDA, 0};
}

// One of the choices of --dtype.
at::ScalarType type_of_name(const std::string& name) {
  if (name == "float32" || name == "fp32") return at::kFloat;
  if (name == "bfloat16" || name == "bf16") return at::kBFloat16;
  return at::kHalf;
}

int run_generate(Schema& schema, GenerateSettings& s) {
  check(schema, s);
  s.generation.seed = static_cast<std::uint64_t>(s.seed);
  const ModelFolder folder = ModelFolder::open(find_model_folder(s.model.name_or_path, Environment::of_process()));
  read_generation_config(schema, folder, s);
  check_sampling_flags(schema, s);
  check_is_language_model(folder);  // before its tokenizer is looked up
  const std::optional<Tokenizer> tokenizer = load_tokenizer(s, folder);
  const TokenIds prompt = prompt_of(s, tokenizer);
  const auto model = load_language_model(folder, at::device(choose_device(s.device)).dtype(type_of_name(s.dtype)));
  UnitRunner runner;
  TokenIds ids = prompt;
  const TokenIds added = generate(*model, {prompt}, s.generation, runner).front();
  ids.insert(ids.end(), added.begin(), added.end());
  const Json text = tokenizer ? Json(text_of(*tokenizer, ids)) : Json(nullptr);
  Json result = {{"ids", ids}, {"text", text}, {"num_prompt_ids", prompt.size()}};
  if (s.with_logits) result["logits"] = logits_after(*model, prompt);
  print_out((s.as_json ? json_text(result) : tokenizer ? text.get<std::string>() : Json(ids).dump()) + "\n");
  return 0;
}

}  // namespace

Command generate_command() {
  return with_settings<GenerateSettings>({.name = "generate", .summary = "continue a text with a model folder"},
                                         declare, run_generate);
}

}  // namespace tessera
