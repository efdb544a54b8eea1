#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "jobs/qa_files.h"
#include "jobs/text_job.h"
#include "listeners/console_text.h"
#include "settings/load.h"
#include "settings/shared.h"

namespace tessera {
namespace {

bool judges_by_answers(const TrainSettings& settings) {
  const std::string& metric = settings.evaluation.metric_for_best_model;
  return !metric.empty() && metric != "loss";
}

class QaJob : public TextJob {
 public:
  QaJob(World& world, TrainSettings settings, OpenedModel model, const TextData& training,
        const std::optional<QaEvaluationData>& evaluation)
      : TextJob(world, std::move(settings), std::move(model), TokenRows(training.tokens),
                evaluation ? std::optional<TextRows>(TokenRows(evaluation->text.tokens)) : std::nullopt),
        prompts_(evaluation ? evaluation->prompts : std::vector<QaPrompt>()) {}

  void announce(const StepPlan& plan) const override {
    TextJob::announce(plan);
    const LanguageModel& model = *text_model().model;
    const std::int64_t asked = settings_.model.vocab_size;
    if (asked > 0 && model.vocab_size() > asked) {
      log_info("using the tokenizer's vocabulary of {}, which is larger than --vocab_size {}", model.vocab_size(),
               asked);
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
    if (prompts_.empty()) return;
    announce_generation(world_, trainer.step().engine());
    const LogRecord metrics = metrics_of_answers(trainer);
    if (world_.rank() == 0) console.print_line(format_evaluation_metrics(metrics));
    listeners.on_summary(trainer.now(), metrics);
  }

 private:
  LogRecord metrics_of_answers(Trainer& trainer) const {
    const OpenedModel& model = text_model();
    return answer_metrics(answer(world_, trainer.step().engine(), *model.model, model.tokenizer, prompts_,
                                 answer_options(world_, model.eos_ids, settings_.evaluation.max_new_tokens)),
                          prompts_);
  }

  std::vector<QaPrompt> prompts_;  // of the evaluation's rows; empty if nothing is generated
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
  OpenedModel model = open_text_model(settings, environment, config);
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
  settle(settings, model, TokenRows(training.tokens), world);
  return std::make_unique<QaJob>(world, std::move(settings), std::move(model), training, evaluation);
}

}  // namespace tessera
