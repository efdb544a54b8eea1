#include "cli/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "jobs/qa_answers.h"
#include "jobs/qa_files.h"
#include "comm/world_settings.h"
#include "comm/rank_env.h"
#include "config/schema.h"
#include "core/clock.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/output.h"
#include "train/engine_setup.h"
#include "train/log_json.h"
#include "report/log_line.h"
#include "core/python_text.h"
#include "jobs/qa_task.h"
#include "comm/exchange.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct EvaluateSettings {
  TrainSettings train;  // what of it matters here
  WorldSettings world;
  std::string strategy, predictions_file;
  std::int64_t subset_seed = -1;
  bool fp16 = false, bf16 = false, as_json = false;
};

void declare_what(Schema& schema, EvaluateSettings& s) {
  const std::string group = "What is evaluated";
  DataSettings& data = s.train.data;
  schema.text("model", &s.train.model.name_or_path)
      .alias("model_name_or_path")
      .group(group)
      .help("folder with config.json and weights, or a hub name in the local cache");
  schema.text("tokenizer", &s.train.model.tokenizer_name)
      .alias("tokenizer_name")
      .group(group)
      .help("where the model's folder has none");
  schema.text("validation_file", &data.validation_file).group(group).help("questions with answers, in a form of SQuAD");
  schema.integer("max_eval_samples", &data.max_eval_samples)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("so many rows, over all ranks; 0: all");
  schema.integer("subset_seed", &s.subset_seed)
      .preset("-1")
      .at_least(-1)
      .group(group)
      .help("rows as datasets' shuffle(seed) gives them; -1: the first ones of the file");
  schema.integer("max_length", &data.max_length)
      .preset("512")
      .range(1, 1'000'000)
      .group(group)
      .help("tokens of a sequence; longer ones are cut");
  schema.text("label_mode", &data.label_mode)
      .preset("answer")
      .choices(label_mode_names())
      .group(group)
      .help("which tokens count for the loss; padded and separate only reproduce the workshops");
}

void declare_how(Schema& schema, EvaluateSettings& s) {
  const std::string how = "How", output = "Output";
  std::vector<std::string> strategies = strategy_names();
  strategies.insert(strategies.begin(), "auto");
  schema.integer("per_device_eval_batch_size", &s.train.loop.eval_batch_size)
      .preset("8")
      .at_least(1)
      .group(how)
      .help("rows of a rank that are one pass for the loss; answers go by memory");
  schema.boolean("predict_with_generate", &s.train.evaluation.generates)
      .preset("true")
      .group(how)
      .help("exact match and F1 of the model's own answers, by greedy generation");
  schema.integer("max_new_tokens", &s.train.evaluation.max_new_tokens)
      .preset("50")
      .range(1, 1'000'000)
      .group(how)
      .help("at most so many tokens an answer");
  schema.boolean("bf16", &s.bf16).preset("false").group(how).help("compute in bfloat16");
  schema.boolean("fp16", &s.fp16).preset("false").group(how).help("compute in float16");
  schema.text("strategy", &s.strategy)
      .preset("auto")
      .choices(strategies)
      .group(how)
      .help("full_shard, zero3: each rank keeps a part of the model; auto: every rank keeps all of it");
  schema.boolean("offload_param", &s.train.spread.offload_param)
      .preset("false")
      .group(how)
      .help("parameters live in host memory between uses; where the strategy splits them");
  schema.boolean("json", &s.as_json)
      .preset("false")
      .group(output)
      .help("one object: eval_loss, exact_match, f1, eval_samples, times and rates");
  schema.text("predictions_file", &s.predictions_file)
      .group(output)
      .help("the answers as the official script reads them: {\"question's id\": \"answer\"}");
}

void refuse(const std::string& message) {
  throw UsageError("tessera evaluate: " + message);
}

// What can be wrong before any file is opened, and the settings that follow from others.
void settle(EvaluateSettings& s, int num_ranks) {
  if (s.train.model.name_or_path.empty()) refuse("--model FOLDER is missing");
  if (s.train.data.validation_file.empty()) refuse("--validation_file FILE is missing");
  if (s.fp16 && s.bf16) refuse("--fp16 and --bf16 exclude each other; give one");
  if (s.strategy == "single" && num_ranks > 1) {
    refuse(fmt::format("--strategy single: there are {} ranks; take ddp or another strategy, or start one", num_ranks));
  }
  if (!s.predictions_file.empty() && !s.train.evaluation.generates) {
    refuse("--predictions_file: needs --predict_with_generate true");
  }
  s.train.spread.strategy = s.strategy != "auto" ? s.strategy : num_ranks > 1 ? "ddp" : "single";
  s.train.spread.pin_memory = s.train.spread.offload_param;
  placement_of(s.train.spread.strategy, {.parameters = s.train.spread.offload_param});  // throws where they do not fit
  s.train.precision.compute = s.bf16 ? NumberType::kBfloat16 : s.fp16 ? NumberType::kFloat16 : NumberType::kFloat32;
  if (s.subset_seed >= 0) s.train.data.subset_seed = s.subset_seed;
}

// {'eval_loss': ..., 'eval_runtime': ..., ...}. Collective.
LogRecord evaluate_loss(World& world, Engine& engine, LanguageModel& model, const TokenStore& rows,
                        std::int64_t batch_size) {
  const at::NoGradGuard no_gradients;
  const QaEvaluation evaluation(model, rows, {world.rank(), world.size(), world.device(), batch_size});
  const double begin = steady_seconds();
  TrainTask::Totals totals;
  {
    const auto pass = engine.forward();
    totals = evaluation.evaluate(engine);
  }
  const LogRecord metrics = evaluation.metrics(sum_over_ranks(world, totals.sums));
  return evaluation_log(metrics, steady_seconds() - begin, rows.size(), totals.num_batches);
}

// Before minutes are spent.
void check_place_of(const std::string& file) {
  if (file.empty()) return;
  std::error_code ignored;
  const fs::path folder = fs::absolute(file).parent_path();
  if (fs::is_directory(file, ignored)) throw UsageError(fmt::format("--predictions_file {}: is a folder", file));
  errno = 0;
  if (::access(folder.c_str(), W_OK | X_OK) == 0 && fs::is_directory(folder, ignored)) return;
  throw UsageError(fmt::format("--predictions_file {}: cannot write in {}: {}", file, folder.string(),
                               std::strerror(errno != 0 ? errno : ENOTDIR)));
}

void write_predictions(const std::string& file, const std::vector<QaPrompt>& prompts,
                       const std::vector<std::string>& answers) {
  if (file.empty()) return;
  nlohmann::json by_id = nlohmann::json::object();  // sorted by key: no lookup of ten thousand by hand
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    by_id[prompts[i].id.empty() ? fmt::format("row {}", i) : prompts[i].id] = answers[i];
  }
  write_file_atomically(file, by_id.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void print_results(const EvaluateSettings& s, const LogRecord& loss, const std::optional<LogRecord>& answers,
                   std::int64_t num_rows, double answer_seconds) {
  if (!s.as_json) {
    print_out(format_log_line(loss) + "\n");
    if (answers) print_out(format_evaluation_metrics(*answers) + "\n");
    return;
  }
  Json result = json_of(loss);
  result["eval_samples"] = num_rows;
  if (answers) {
    for (const auto& [key, value] : answers->entries()) result[key] = json_of(value);
    result["generation_runtime"] = python_round(answer_seconds, 4);
    result["generation_samples_per_second"] = python_round(static_cast<double>(num_rows) / answer_seconds, 3);
  }
  print_out(result.dump() + "\n");
}

void evaluate(World& world, const EvaluateSettings& s, const Environment& environment) {
  if (world.rank() == 0) check_place_of(s.predictions_file);
  const QaModel model = open_qa_model(s.train, environment);
  const QaEvaluationData data = open_qa_evaluation(s.train, model, environment);
  check_vocabulary(data.text.tokens, *model.model, s.train.data.validation_file);
  const std::string warning = warning_of(label_mode_of(s.train.data.label_mode));
  if (!warning.empty() && world.rank() == 0) log_warn("{}", warning);
  EngineOptions options = engine_options(s.train, *model.model, world.device());
  options.first_values = FirstValues(model, 0);
  Engine engine(world, *model.model, units_to_spread(*model.model, s.train.spread), options);
  model.model->eval();
  const LogRecord loss = evaluate_loss(world, engine, *model.model, data.text.tokens, s.train.loop.eval_batch_size);
  const double begin = steady_seconds();
  std::vector<std::string> answers;
  std::optional<LogRecord> metrics;
  if (s.train.evaluation.generates) {
    announce_generation(world, engine);
    answers = qa_answers(world, engine, model, data.prompts, s.train.evaluation.max_new_tokens);
    metrics = answer_metrics(answers, data.prompts);
  }
  if (world.rank() != 0) return;
  print_results(s, loss, metrics, data.text.tokens.size(), steady_seconds() - begin);
  write_predictions(s.predictions_file, data.prompts, answers);
}

}  // namespace

int run_evaluate(const std::vector<std::string>& args) {
  EvaluateSettings s;
  Schema schema("tessera evaluate", "loss, exact match and F1 of a model folder on questions with answers");
  declare_what(schema, s);
  declare_how(schema, s);
  declare(schema, s.world);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  const Environment environment = Environment::of_process();
  settle(s, discover_rank(environment).world_size);
  WorldOptions options = options_of(s.world, schema);
  if (s.as_json) options.banner = options.log_all_ranks = false;  // the object is all that goes to standard output
  return run_rank(options, [&](World& world) {
    evaluate(world, s, environment);
    return 0;
  });
}

}  // namespace tessera
