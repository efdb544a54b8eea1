// gpt-qa: train a GPT-like model from scratch on SQuAD's questions and answers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "jobs/qa_files.h"
#include "model/families/tessera_gpt.h"
#include "settings/load.h"

namespace tessera {
namespace {

void declare_gpt(Schema& schema, DeclaredSettings& s) {
  ModelSettings& model = s.train.model;
  // The workshop's env file names the model whose tokenizer is used.
  schema.text("tokenizer_name", &model.tokenizer_name, "file or folder of the tokenizer",
              {.environment = {"MODEL_NAME"}});
  schema.text("model_name_or_path", &model.name_or_path, "", {.is_hidden = true});  // refused: see check_gpt()
  const auto size = [&](const char* name, std::int64_t* value, const char* variable, const char* preset,
                        const char* help) {
    schema.integer(name, value, help,
                   {.preset = preset, .at_least = 1, .at_most = 1'000'000'000, .environment = {variable}});
  };
  size("vocab_size", &model.vocab_size, "VOCAB_SIZE", "50000",
       "size of the vocabulary; the tokenizer's own if that is larger");
  size("hidden_size", &model.hidden_size, "HIDDEN_SIZE", "2048", "width of the model");
  size("num_layers", &model.num_layers, "NUM_LAYERS", "3", "number of layers");
  size("num_heads", &model.num_heads, "NUM_HEADS", "16", "attention heads per layer");
  size("ff_dim", &model.ff_dim, "FF_DIM", "8192", "hidden width of a layer's feed-forward part");
  size("seq_length", &model.seq_length, "SEQ_LENGTH", "512", "longest sequence of the model");
  schema.real("layers_per_rank", &s.layers_per_rank,
              "weak scaling: num_layers is this times the number of ranks, 1.5 for 3, 6, 12; 0: use --num_layers",
              {.preset = "0", .at_least = 0});
  schema.real("dropout", &model.dropout, "share of values set to zero",
              {.preset = "0.1", .at_least = 0, .at_most = 0.99});
  schema.word("positions", &model.learned_positions, {"none", "learned"}, "whether the model has position embeddings",
              {.preset = "none"});
}

void resolve_gpt(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  resolve_qa_files(schema, s, how, notes);
  if (s.layers_per_rank > 0) {
    overrule(schema, "layers_per_rank", "num_layers", notes);
    if (how.num_ranks) {
      const double layers = s.layers_per_rank * *how.num_ranks;
      if (layers != std::floor(layers) || layers > 1e9) {
        throw UsageError(fmt::format("{}: times {} ranks makes {} layers, which is not a whole number of layers",
                                     shown(schema, "layers_per_rank"), *how.num_ranks, layers));
      }
      follow(schema, "num_layers", static_cast<std::int64_t>(layers), "layers_per_rank");
      notes.push_back(
          fmt::format("weak scaling: {} layers, {} for each of {} ranks", layers, s.layers_per_rank, *how.num_ranks));
    }
  }
  const ModelSettings& model = s.train.model;
  if (!schema.at("max_length").is_set() && s.train.data.max_length > model.seq_length) {
    follow(schema, "max_length", model.seq_length, "seq_length");
  }
}

void check_gpt(const Schema& schema, const DeclaredSettings& s, bool needs_data) {
  const std::string& folder = s.train.model.name_or_path;
  if (!folder.empty()) {
    throw UsageError(
        fmt::format("{}: gpt-qa trains a new model, and would not read these weights; `tessera train qa` trains the "
                    "model of a folder. For its tokenizer alone give --tokenizer_name {}",
                    shown(schema, "model_name_or_path"), folder));
  }
  if (s.train.data.max_length > s.train.model.seq_length) {
    throw UsageError(fmt::format("{} is more than {}", shown(schema, "max_length"), shown(schema, "seq_length")));
  }
  if (!needs_data) return;
  require(s.train.model.tokenizer_name, "--tokenizer_name PATH");
}

GptConfig gpt_sizes(const ModelSettings& model, std::int64_t vocab_size) {
  GptConfig config;
  config.vocab_size = vocab_size;
  config.hidden_size = model.hidden_size;
  config.num_layers = model.num_layers;
  config.num_heads = model.num_heads;
  config.ff_dim = model.ff_dim;
  config.seq_length = model.seq_length;
  config.learned_positions = model.learned_positions;
  config.dropout = model.dropout;
  return config;
}

std::optional<std::int64_t> num_gpt_parameters(const TrainSettings& settings) {
  const Json config = gpt_sizes(settings.model, settings.model.vocab_size).to_json();
  return num_parameters(*make_language_model(config, "the settings", at::device(at::kMeta)));
}

Json gpt_config_of(const ModelSettings& model, const Tokenizer& tokenizer) {
  Json json = gpt_sizes(model, std::max(model.vocab_size, tokenizer.vocab_size())).to_json();
  if (const auto id = tokenizer.bos_id()) json["bos_token_id"] = *id;
  if (const auto id = tokenizer.eos_id()) json["eos_token_id"] = *id;
  if (const auto id = tokenizer.pad_id()) json["pad_token_id"] = *id;
  return json;
}

std::unique_ptr<OpenJob> open_gpt_qa(World& world, const LoadedTrainSettings& run,
                                     const std::optional<std::filesystem::path>& checkpoint) {
  return open_qa_job(world, run, checkpoint, gpt_config_of);
}

}  // namespace

Job gpt_qa() {
  JobTraits traits = qa_traits();
  traits.name = "gpt-qa";
  traits.summary = "train a GPT-like model from scratch on questions and answers";
  traits.example = "--tokenizer_name bigscience/bloom-560m --train_file train-v1.1.json --bf16";
  traits.presets.batch_size = "8";
  traits.presets.eval_batch_size = "8";
  traits.presets.logging_steps = "10";
  traits.presets.output_dir = "./gpt-qa";
  traits.declare_model = declare_gpt;
  traits.resolve = resolve_gpt;
  traits.num_parameters = num_gpt_parameters;
  traits.check = check_gpt;
  return {traits, open_gpt_qa};
}

}  // namespace tessera
