// `tessera evaluate`: loss, exact match and F1 of a model folder on a SQuAD file.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/commands.h"
#include "comm/exchange.h"
#include "comm/rank_env.h"
#include "comm/world_settings.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/log.h"
#include "core/log_record.h"
#include "core/output.h"
#include "jobs/qa_files.h"
#include "jobs/text_task.h"
#include "listeners/console_text.h"
#include "parallel/placement.h"
#include "settings/shared.h"
#include "train/meters.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct EvaluateSettings {
  TrainSettings train;  // only some of it matters here
  WorldOptions world;
  std::string predictions_file;
  std::int64_t subset_seed = -1;
  bool fp16 = false, bf16 = false, as_json = false;
};

void declare(Schema& schema, EvaluateSettings& s) {
  DataSettings& data = s.train.data;
  schema.group("What is evaluated");
  shared::model_name_or_path(schema, s.train.model, {.aliases = {"model"}});
  shared::tokenizer_name(schema, s.train.model, {.aliases = {"tokenizer"}});
  shared::validation_file(schema, data);
  shared::max_eval_samples(schema, data);
  shared::text_rows(schema, data, &s.subset_seed, label_mode_names());
  schema.group("How");
  shared::eval_batch_size(schema, &s.train.loop.eval_batch_size, {.preset = "8"});
  shared::generation(schema, s.train.evaluation);
  shared::half_types(schema, &s.fp16, &s.bf16);
  declare(schema, s.train.spread, {"strategy", "offload_param", "pin_memory"});
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print one object: eval_loss, exact_match, f1, eval_samples, times and rates");
  schema.text("predictions_file", &s.predictions_file,
              "write the answers as the official script reads them: {\"question's id\": \"answer\"}");
  declare(schema, s.world);
}

void refuse(const std::string& message) {
  throw UsageError("tessera evaluate: " + message);
}

// Checks what can be wrong before any file is opened, and sets what follows from other settings.
void resolve(EvaluateSettings& s, int num_ranks) {
  if (s.train.model.name_or_path.empty()) refuse("--model FOLDER is missing");
  if (s.train.data.validation_file.empty()) refuse("--validation_file FILE is missing");
  if (s.fp16 && s.bf16) refuse("--fp16 and --bf16 exclude each other; give one");
  SpreadOptions& spread = s.train.spread;
  spread = resolve_strategy(spread, num_ranks);
  if (placement_of(spread).is_for_one_rank && num_ranks > 1) {  // and throws where offload does not fit
    refuse(fmt::format("--strategy {}: there are {} ranks; use ddp or another strategy, or start one", spread.strategy,
                       num_ranks));
  }
  if (!s.predictions_file.empty() && !s.train.evaluation.generates) {
    refuse("--predictions_file: needs --predict_with_generate true");
  }
  s.train.precision.compute = s.bf16 ? NumberType::kBFloat16 : s.fp16 ? NumberType::kFloat16 : NumberType::kFloat32;
  if (s.subset_seed >= 0) s.train.data.subset_seed = s.subset_seed;
}

// {'eval_loss': ..., 'eval_runtime': ..., ...}. Collective.
LogRecord evaluate_loss(World& world, Engine& engine, LanguageModel& model, const TextRows& rows,
                        std::int64_t batch_size) {
  const at::NoGradGuard no_gradients;
  const TextEvaluation evaluation(model, rows, world, batch_size);
  const double begin = steady_seconds();
  TrainTask::Totals totals;
  {
    const auto pass = engine.forward();
    totals = evaluation.evaluate(engine);
  }
  const LogRecord metrics = evaluation.metrics(sum_over_ranks(world, totals.sums));
  return evaluation_log(metrics, steady_seconds() - begin, rows.size(), totals.num_batches);
}

// Checked before minutes are spent.
void check_place_of(const std::string& file) {
  if (file.empty()) return;
  const fs::path folder = fs::absolute(file).parent_path();
  if (is_folder(file)) throw UsageError(fmt::format("--predictions_file {}: is a folder", file));
  errno = 0;
  if (::access(folder.c_str(), W_OK | X_OK) == 0 && is_folder(folder)) return;
  throw UsageError(fmt::format("--predictions_file {}: cannot write in {}: {}", file, folder.string(),
                               std::strerror(errno != 0 ? errno : ENOTDIR)));
}

void write_predictions(const std::string& file, const std::vector<QaPrompt>& prompts,
                       const std::vector<std::string>& answers) {
  if (file.empty()) return;
  std::map<std::string, std::string> by_id;  // Json's own lookup is linear
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    by_id[prompts[i].id.empty() ? fmt::format("row {}", i) : prompts[i].id] = answers[i];
  }
  write_file_atomically(file, json_text(Json(by_id), 1) + "\n");
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
  print_out(json_text(result) + "\n");
}

void evaluate(World& world, const EvaluateSettings& s, const Environment& environment) {
  if (world.rank() == 0) check_place_of(s.predictions_file);
  const OpenedModel model = open_text_model(s.train, environment);
  const QaEvaluationData data = open_qa_evaluation(s.train, model, environment);
  check_rows(data.text.tokens, *model.model, s.train.data.validation_file);
  const std::string warning = warning_of(label_mode_of(s.train.data.label_mode));
  if (!warning.empty() && world.rank() == 0) log_warn("{}", warning);
  TrainStepOptions options = step_options(s.train, *model.model, world.device());
  options.first_values = first_values_of(model, 0);
  TrainStep step(world, *model.model, units_to_spread(*model.model, s.train.wrap), options);
  Engine& engine = step.engine();
  model.model->eval();
  const LogRecord loss =
      evaluate_loss(world, engine, *model.model, TokenRows(data.text.tokens), s.train.loop.eval_batch_size);
  const double begin = steady_seconds();
  std::vector<std::string> answers;
  std::optional<LogRecord> metrics;
  if (s.train.evaluation.generates) {
    announce_generation(world, engine);
    answers = answer(world, engine, *model.model, model.tokenizer, data.prompts,
                     answer_options(world, model.eos_ids, s.train.evaluation.max_new_tokens));
    metrics = answer_metrics(answers, data.prompts);
  }
  if (world.rank() != 0) return;
  print_results(s, loss, metrics, data.text.tokens.size(), steady_seconds() - begin);
  write_predictions(s.predictions_file, data.prompts, answers);
}

int run_evaluate(Schema& schema, EvaluateSettings& s) {
  const Environment environment = Environment::of_process();
  resolve(s, discover_rank(environment).world_size);
  WorldOptions options = options_of(s.world, schema);
  if (s.as_json) options.banner = options.log_all_ranks = false;  // the object is all that goes to standard output
  return run_rank(options, [&](World& world) {
    evaluate(world, s, environment);
    return 0;
  });
}

}  // namespace

Command evaluate_command() {
  return with_settings<EvaluateSettings>(
      {.name = "evaluate",
       .summary = "loss, exact match and F1 of a model folder",
       .about = "loss, exact match and F1 of a model folder on questions with answers"},
      declare, run_evaluate);
}

}  // namespace tessera
