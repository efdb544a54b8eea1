#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "jobs/qa_files.h"
#include "jobs/qa_task.h"
#include "jobs/run_plan.h"
#include "jobs/speed_trial.h"
#include "listeners/console_text.h"
#include "settings/load.h"
#include "settings/shared.h"

namespace tessera {
namespace {

bool judges_by_answers(const TrainSettings& settings) {
  const std::string& metric = settings.evaluation.metric_for_best_model;
  return !metric.empty() && metric != "loss";
}

class QaJob : public OpenJob {
 public:
  QaJob(World& world, TrainSettings settings, QaModel model, TextData training,
        std::optional<QaEvaluationData> evaluation)
      : OpenJob(world, std::move(settings),
                {*model.model, model.config, model.generation_config, model.tokenizer_files}),
        model_(std::move(model)),
        training_(std::move(training)),
        evaluation_(std::move(evaluation)),
        task_(model_.model, training_.tokens, evaluation_ ? &evaluation_->text.tokens : nullptr, settings_, world) {}

  TrainTask& task() override { return task_; }
  ParameterSource first_values() const override {
    return first_values_of(model_, static_cast<std::uint64_t>(settings_.loop.seed));
  }
  PlanReport memory_plan() const override {
    return plan_of_rows(settings_, model_, training_.tokens, world_,
                        settings_.loop.merge_accumulation == MergeAccumulation::kOn);
  }

  double predicted_update_seconds() override {
    if (!has_planned_units(*model_.model, settings_.wrap)) {
      return tried_seconds(world_, task_, settings_, first_values());
    }
    const SpreadOptions& spread = settings_.spread;
    const std::int64_t num_blocks = model_.model->shape().num_layers;
    // The root is the first unit on the device.
    const bool offloads = spread.offload_optimizer || spread.offload_parameters;
    const std::int64_t on_device =
        offloads ? std::clamp(spread.units_on_device - 1, std::int64_t{0}, num_blocks) : num_blocks;
    return extrapolated_seconds(
        {on_device, num_blocks - on_device}, [&](const BlockCounts& blocks, const TrialLength& length) {
          TrainSettings settings = settings_;
          settings.spread.units_on_device = std::min(spread.units_on_device, 1 + blocks.on_device);
          const auto model = model_with_blocks(blocks.on_device + blocks.on_host);
          QaTask task(model, training_.tokens, nullptr, settings, world_);
          return tried_seconds(world_, task, settings, fresh_values_of(*model, /*seed=*/0), length);
        });
  }

  void announce(const StepPlan& plan) const override {
    log_info("{}: {} parameters, strategy {}, {} training rows, {} evaluation rows", settings_.job,
             num_parameters(*model_.model), settings_.spread.strategy, task_.num_rows(), task_.num_eval_rows());
    log_info("{} steps of {} x {} rows on {} rank{}, {} epochs", plan.total_steps(), settings_.loop.batch_size,
             settings_.loop.accumulation, world_.size(), world_.size() == 1 ? "" : "s", plan.num_epochs());
    const std::int64_t asked = settings_.model.vocab_size;
    if (asked > 0 && model_.model->vocab_size() > asked) {
      log_info("using the tokenizer's vocabulary of {}, which is larger than --vocab_size {}",
               model_.model->vocab_size(), asked);
    }
    const std::string warning = warning_of(label_mode_of(settings_.data.label_mode));
    if (!warning.empty()) log_warn("{}", warning);
  }

  // If exact match or F1 decides which model is the best, every evaluation needs them.
  void before_training(Trainer& trainer, Console&, Listeners&) override {
    if (!judges_by_answers(settings_)) return;
    trainer.add_metrics([this, &trainer] {
      const LogRecord found = metrics_of_answers(trainer);
      LogRecord renamed;
      for (const auto& [key, value] : found.entries()) renamed.set("eval_" + key, value);
      return renamed;
    });
  }

  // The saved model's own answers.
  void after_saving(Trainer& trainer, Console& console, Listeners& listeners) override {
    if (!evaluation_ || evaluation_->prompts.empty()) return;
    announce_generation(world_, trainer.step().engine());
    const LogRecord metrics = metrics_of_answers(trainer);
    if (world_.rank() == 0) console.print_line(format_evaluation_metrics(metrics));
    listeners.on_summary(trainer.now(), metrics);
  }

 private:
  std::shared_ptr<LanguageModel> model_with_blocks(std::int64_t num_blocks) const {
    const Json config = with_num_blocks(model_.model->config(), num_blocks);
    auto model = make_language_model(config, "the model with fewer blocks", at::dtype(at::kFloat).device(at::kMeta));
    if (model->shape().num_layers != num_blocks) throw Error("a model's config does not say how many blocks it has");
    return model;
  }

  LogRecord metrics_of_answers(Trainer& trainer) const {
    const std::vector<QaPrompt>& prompts = evaluation_->prompts;
    return answer_metrics(answer(world_, trainer.step().engine(), *model_.model, model_.tokenizer, prompts,
                                 answer_options(world_, model_.eos_ids, settings_.evaluation.max_new_tokens)),
                          prompts);
  }

  QaModel model_;
  TextData training_;
  std::optional<QaEvaluationData> evaluation_;
  QaTask task_;
};

}  // namespace

JobTraits qa_traits() {
  JobTraits traits;
  traits.presets.learning_rate = "5e-5";
  traits.presets.weight_decay = "0.01";
  traits.presets.max_grad_norm = "1";
  traits.presets.optim = "adamw_torch_fused";
  traits.presets.save_strategy = "epoch";
  traits.metrics = {"loss", "exact_match", "f1"};
  traits.declare_data = [](Schema& schema, DeclaredSettings& s) {
    schema.text(
        "train_file", &s.train.data.train_file,
        "SQuAD questions with answers to train on, .json or .jsonl; none: looked for in --data_dir, data, squad");
    shared::validation_file(schema, s.train.data);
    schema.text("data_dir", &s.train.data.data_dir,
                "folder with SQuAD's train-v1.1.json, for runs without --train_file", {.environment = {"DATA_DIR"}});
    shared::text_rows(schema, s.train.data, &s.subset_seed, label_mode_names());
  };
  traits.declare_evaluation = [](Schema& schema, DeclaredSettings& s) {
    shared::generation(schema, s.train.evaluation);
  };
  traits.resolve = resolve_qa_files;
  traits.evaluation_setting = "--validation_file";
  traits.has_evaluation_data = [](const TrainSettings& settings) { return !settings.data.validation_file.empty(); };
  return traits;
}

void resolve_qa_files(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes) {
  if (schema.at("train_file").is_set() || !how.needs_data) return;
  const FoundSquad found = find_squad(s.train.data.data_dir, how.environment);
  const auto use = [&](const char* name, const std::filesystem::path& file) {
    schema.read_json(Json{{name, file.string()}}, "found in a usual place");
    notes.push_back(fmt::format("--{} is not given: using {}", name, file.string()));
  };
  use("train_file", found.training);
  // Only if evaluations are asked for: 10,570 answers take long.
  const bool wants_evaluation = schema.at("max_eval_samples").is_set() || schema.at("eval_strategy").is_set();
  if (wants_evaluation && !schema.at("validation_file").is_set() && !found.validation.empty()) {
    use("validation_file", found.validation);
  }
}

std::unique_ptr<OpenJob> open_qa_job(World& world, const LoadedTrainSettings& run,
                                     const std::optional<std::filesystem::path>& checkpoint, ScratchConfig config) {
  TrainSettings settings = run.settings;
  const Environment& environment = run.request.environment;
  QaModel model = open_qa_model(settings, environment, config);
  if (checkpoint) model.weights_folder = *checkpoint;
  TextData training = open_qa_training(settings, model, environment);
  std::optional<QaEvaluationData> evaluation;
  if (!settings.data.validation_file.empty()) evaluation = open_qa_evaluation(settings, model, environment);
  check_rows(training.tokens, *model.model, settings.data.train_file);
  if (evaluation) check_rows(evaluation->text.tokens, *model.model, settings.data.validation_file);
  if (judges_by_answers(settings) && (!evaluation || evaluation->prompts.empty())) {
    throw UsageError(fmt::format("--metric_for_best_model {}: needs --predict_with_generate true",
                                 settings.evaluation.metric_for_best_model));
  }
  const auto plan = [&](bool merges) { return plan_of_rows(settings, model, training.tokens, world, merges); };
  const bool merges = decide_merging(
      settings, *model.model, [&] { return plan(true); }, world);
  settings.loop.merge_accumulation = merges ? MergeAccumulation::kOn : MergeAccumulation::kOff;
  use_gpu_memory(
      settings, [&] { return plan(merges); }, world);
  return std::make_unique<QaJob>(world, std::move(settings), std::move(model), std::move(training),
                                 std::move(evaluation));
}

}  // namespace tessera
