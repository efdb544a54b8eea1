#include "jobs/train_qa.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "state/checkpoints.h"
#include "jobs/qa_answers.h"
#include "jobs/qa_files.h"
#include "jobs/run_training.h"
#include "jobs/train_plan.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "report/log_line.h"
#include "jobs/qa_task.h"
#include "train/trainer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

QaTaskOptions task_options(const TrainSettings& settings, const World& world) {
  const DataSettings& data = settings.data;
  QaTaskOptions options;
  options.rank = world.rank();
  options.num_ranks = world.size();
  options.device = world.device();
  options.batch_size = settings.loop.batch_size;
  options.eval_batch_size = settings.loop.eval_batch_size;
  options.accumulation = settings.loop.accumulation;
  options.merges = settings.loop.merge_accumulation == MergeAccumulation::kOn;
  options.shuffles = data.shuffle;
  options.drops_last = data.drop_last;
  options.data_seed = static_cast<std::uint64_t>(settings.loop.data_seed);
  options.num_workers = data.num_workers;
  options.num_ahead = std::max<std::int64_t>(1, std::int64_t{data.num_workers} * data.prefetch_factor);
  return options;
}

void announce(const TrainSettings& settings, const QaModel& model, const QaData& data, const StepPlan& plan,
              const World& world) {
  if (world.rank() != 0) return;
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : model.model->parameters()) numel += parameter.numel();
  log_info("{}: {} parameters, strategy {}, {} training rows, {} evaluation rows", name_of(settings.job), numel,
           settings.spread.strategy, data.training.tokens.size(), data.evaluation ? data.evaluation->tokens.size() : 0);
  log_info("{} steps of {} x {} rows on {} rank{}, {} epochs", plan.total_steps(), settings.loop.batch_size,
           settings.loop.accumulation, world.size(), world.size() == 1 ? "" : "s", plan.num_epochs());
  if (settings.job == Job::kGptQa && model.model->vocab_size() > settings.model.vocab_size) {
    log_info("the vocabulary is the tokenizer's, {}: larger than --vocab_size {}", model.model->vocab_size(),
             settings.model.vocab_size);
  }
  const std::string warning = warning_of(label_mode_of(settings.data.label_mode));
  if (!warning.empty()) log_warn("{}", warning);
}

bool judges_by_answers(const TrainSettings& settings) {
  const std::string& metric = settings.evaluation.metric_for_best_model;
  return !metric.empty() && metric != "loss";
}

// Where exact match or F1 says which model is the best, every evaluation needs them.
void add_answer_metrics(World& world, Trainer& trainer, const TrainSettings& settings, const QaModel& model,
                        const QaData& data) {
  if (!judges_by_answers(settings)) return;
  trainer.add_metrics([&world, &trainer, &settings, &model, &data] {
    const std::int64_t max_new_tokens = settings.evaluation.max_new_tokens;
    const LogRecord found =
        answer_metrics(qa_answers(world, trainer.engine(), model, data.prompts, max_new_tokens), data.prompts);
    LogRecord renamed;
    for (const auto& [key, value] : found.entries()) renamed.set("eval_" + key, value);
    return renamed;
  });
}

// The saved model's own answers.
void show_answers(World& world, Trainer& trainer, const TrainSettings& settings, const QaModel& model,
                  const QaData& data, Console& console, Listeners& listeners) {
  if (data.prompts.empty()) return;
  announce_generation(world, trainer.engine());
  const LogRecord metrics = answer_metrics(
      qa_answers(world, trainer.engine(), model, data.prompts, settings.evaluation.max_new_tokens), data.prompts);
  if (world.rank() == 0) console.print_line(format_evaluation_metrics(metrics));
  listeners.on_summary(trainer.now(), metrics);
}

// The settings with what was left to the run decided.
TrainSettings decided(TrainSettings settings, const QaModel& model, const QaData& data, World& world) {
  const bool merges = decide_merging(settings, model, data.training.tokens, world);
  settings.loop.merge_accumulation = merges ? MergeAccumulation::kOn : MergeAccumulation::kOff;
  return settings;
}

int run_trainer(World& world, QaTask& task, const TrainRun& run, const TrainSettings& settings, const QaModel& model,
                const QaData& data, const std::optional<fs::path>& checkpoint) {
  const SavedModel saved = saved_model_of(model);
  RunParts parts{world,
                 run,
                 settings,
                 task,
                 saved,
                 FirstValues(model, static_cast<std::uint64_t>(settings.loop.seed)),
                 checkpoint,
                 [&] {
                   return plan_of_run(settings, model, data.training.tokens, world,
                                      settings.loop.merge_accumulation == MergeAccumulation::kOn);
                 }};
  if (settings.dry_run) {
    check_run(parts);
    return 0;
  }
  return run_training(std::move(parts),
                      {.before = [&](Trainer& trainer, Console&,
                                     Listeners&) { add_answer_metrics(world, trainer, settings, model, data); },
                       .after =
                           [&](Trainer& trainer, Console& console, Listeners& listeners) {
                             show_answers(world, trainer, settings, model, data, console, listeners);
                           }});
}

}  // namespace

int train_qa(World& world, const TrainRun& run) {
  const TrainSettings& given = run.settings();
  prepare_output_folder(world, given.output.output_dir);
  QaModel model = open_qa_model(given, run.environment);
  const std::optional<fs::path> checkpoint = checkpoint_to_resume(given.output);
  if (checkpoint) model.weights_folder = *checkpoint;
  const QaData data = open_qa_data(given, model, run.environment);
  check_vocabulary(data.training.tokens, *model.model, given.data.train_file);
  if (data.evaluation) check_vocabulary(data.evaluation->tokens, *model.model, given.data.validation_file);
  if (judges_by_answers(given) && data.prompts.empty()) {
    throw UsageError(fmt::format("--metric_for_best_model {}: needs --predict_with_generate true",
                                 given.evaluation.metric_for_best_model));
  }
  const TrainSettings settings = decided(given, model, data, world);
  QaTask task(model.model, data.training.tokens, data.evaluation ? &data.evaluation->tokens : nullptr,
              task_options(settings, world));
  announce(settings, model, data, plan_steps(task, settings), world);
  return run_trainer(world, task, run, settings, model, data, checkpoint);
}

}  // namespace tessera
