#include "jobs/qa_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "jobs/qa_task.h"
#include "jobs/run_plan.h"
#include "jobs/speed_trial.h"
#include "listeners/console_text.h"
#include "model/parameters.h"
#include "settings/load.h"
#include "settings/shared.h"

namespace tessera {
namespace {

QaTaskOptions qa_task_options(const TrainSettings& settings, const World& world) {
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
  options.loading =
      loader_options(data, world.device(), std::max(options.batch_size, options.eval_batch_size) * data.max_length * 8);
  return options;
}

bool judges_by_answers(const TrainSettings& settings) {
  const std::string& metric = settings.evaluation.metric_for_best_model;
  return !metric.empty() && metric != "loss";
}

class QaJob : public OpenJob {
 public:
  QaJob(World& world, TrainSettings settings, QaModel model, QaData data)
      : world_(world),
        settings_(std::move(settings)),
        model_(std::move(model)),
        data_(std::move(data)),
        saved_(saved_model_of(model_)),
        task_(model_.model, data_.training.tokens, data_.evaluation ? &data_.evaluation->tokens : nullptr,
              qa_task_options(settings_, world)) {}

  const TrainSettings& settings() const override { return settings_; }
  TrainTask& task() override { return task_; }
  const SavedModel& saved_model() const override { return saved_; }
  ParameterSource first_values() const override {
    return FirstValues(model_, static_cast<std::uint64_t>(settings_.loop.seed));
  }
  PlanReport memory_plan() const override {
    return plan_of_rows(settings_, model_, data_.training.tokens, world_,
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
          QaTask task(model, data_.training.tokens, nullptr, qa_task_options(settings, world_));
          const auto draw = [&](const std::string& name, at::Tensor values) {
            initialise_parameter(values, name, model->initializer_range(), /*seed=*/0);
          };
          return tried_seconds(world_, task, settings, draw, length);
        });
  }

  void announce(const StepPlan& plan) const override {
    std::int64_t numel = 0;
    for (const at::Tensor& parameter : model_.model->parameters()) numel += parameter.numel();
    log_info("{}: {} parameters, strategy {}, {} training rows, {} evaluation rows", settings_.job, numel,
             settings_.spread.strategy, data_.training.tokens.size(),
             data_.evaluation ? data_.evaluation->tokens.size() : 0);
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
      const LogRecord found = answer_metrics(answers(trainer), data_.prompts);
      LogRecord renamed;
      for (const auto& [key, value] : found.entries()) renamed.set("eval_" + key, value);
      return renamed;
    });
  }

  // The saved model's own answers.
  void after_saving(Trainer& trainer, Console& console, Listeners& listeners) override {
    if (data_.prompts.empty()) return;
    announce_generation(world_, trainer.step().engine());
    const LogRecord metrics = answer_metrics(answers(trainer), data_.prompts);
    if (world_.rank() == 0) console.print_line(format_evaluation_metrics(metrics));
    listeners.on_summary(trainer.now(), metrics);
  }

 private:
  std::shared_ptr<LanguageModel> model_with_blocks(std::int64_t num_blocks) const {
    Json config = model_.model->config();
    for (const char* key : {"n_layer", "num_layers"}) {
      if (config.contains(key)) config[key] = num_blocks;
    }
    auto model = make_language_model(config, "the model with fewer blocks", at::dtype(at::kFloat).device(at::kMeta));
    if (model->shape().num_layers != num_blocks) throw Error("a model's config does not say how many blocks it has");
    return model;
  }

  std::vector<std::string> answers(Trainer& trainer) const {
    return answer(world_, trainer.step().engine(), *model_.model, model_.tokenizer, data_.prompts,
                  answer_options(world_, model_.eos_ids, settings_.evaluation.max_new_tokens));
  }

  World& world_;
  TrainSettings settings_;
  QaModel model_;
  QaData data_;
  SavedModel saved_;
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
    const std::string group = "Data";
    schema.text("train_file", &s.train.data.train_file)
        .group(group)
        .help("SQuAD questions with answers to train on, .json or .jsonl; none: looked for in --data_dir, data, squad");
    shared::validation_file(schema, s.train.data, group);
    schema.text("data_dir", &s.train.data.data_dir)
        .environment("DATA_DIR")
        .group(group)
        .help("folder with SQuAD's train-v1.1.json, for runs without --train_file");
    shared::text_rows(schema, s.train.data, &s.subset_seed, label_mode_names(), group);
  };
  traits.declare_evaluation = [](Schema& schema, DeclaredSettings& s) {
    shared::generation(schema, s.train.evaluation, "Evaluation");
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

std::unique_ptr<OpenJob> open_qa_job(World& world, const LoadedTrainSettings& run, QaModel model,
                                     const std::optional<std::filesystem::path>& checkpoint) {
  TrainSettings settings = run.settings;
  if (checkpoint) model.weights_folder = *checkpoint;
  QaData data = open_qa_data(settings, model, run.request.environment);
  check_vocabulary(data.training.tokens, *model.model, settings.data.train_file);
  if (data.evaluation) check_vocabulary(data.evaluation->tokens, *model.model, settings.data.validation_file);
  if (judges_by_answers(settings) && data.prompts.empty()) {
    throw UsageError(fmt::format("--metric_for_best_model {}: needs --predict_with_generate true",
                                 settings.evaluation.metric_for_best_model));
  }
  const auto merged = [&] { return plan_of_rows(settings, model, data.training.tokens, world, /*merges=*/true); };
  const bool merges = decide_merging(settings, *model.model, merged, world);
  settings.loop.merge_accumulation = merges ? MergeAccumulation::kOn : MergeAccumulation::kOff;
  use_gpu_memory(
      settings, [&] { return plan_of_rows(settings, model, data.training.tokens, world, merges); }, world);
  return std::make_unique<QaJob>(world, std::move(settings), std::move(model), std::move(data));
}

}  // namespace tessera
