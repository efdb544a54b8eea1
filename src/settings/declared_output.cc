// Settings of what a run leaves: evaluation, checkpoints, log lines, reports.
#include "settings/declared.h"

namespace tessera::internal {

void declare_evaluation(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "Evaluation";
  EvaluationSettings& evaluation = s.train.evaluation;
  const bool is_text = job != Job::kResnetTinyimagenet;
  schema.text("eval_strategy", &s.eval_strategy)
      .alias("evaluation_strategy")
      .preset("epoch")
      .choices({"no", "steps", "epoch"})
      .group(group)
      .help("when; without data for it, no");
  schema.real("eval_steps", &s.eval_steps)
      .at_least(0)
      .group(group)
      .help("updates between two, below 1 a share of all; none: --logging_steps");
  schema.real("eval_delay", &s.train.flow.eval_delay)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("epochs (or updates) before the first");
  schema.boolean("eval_on_start", &evaluation.on_start).group(group).help("once before the first update");
  schema.boolean("do_eval", &s.do_eval).group(group).help("once after the last update, where --eval_strategy is no");
  schema.boolean("load_best_model_at_end", &evaluation.load_best_model_at_end)
      .group(group)
      .help("end with the checkpoint that did best");
  schema.text("metric_for_best_model", &evaluation.metric_for_best_model)
      .group(group)
      .help(is_text ? "loss, exact_match or f1, with or without eval_ before it"
                    : "loss or accuracy, with or without eval_ before it");
  schema.boolean("greater_is_better", &s.greater_is_better)
      .group(group)
      .help("of that metric; unset: unless it is a loss");
  schema.integer("early_stopping_patience", &evaluation.early_stopping_patience)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("end after so many evaluations that are no better; 0: never");
  schema.real("early_stopping_threshold", &evaluation.early_stopping_threshold)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("what counts as better");
  if (is_text) {
    schema.boolean("predict_with_generate", &evaluation.generates)
        .preset("true")
        .group(group)
        .help("exact match and F1 at the end, by greedy generation");
    schema.integer("max_new_tokens", &evaluation.max_new_tokens)
        .preset("50")
        .range(1, 1'000'000)
        .group(group)
        .help("of each answer");
  } else {
    schema.boolean("local_metrics", &evaluation.local_metrics)
        .group(group)
        .help("rank 0's own, not those of all ranks");
  }
}

void declare_output(Schema& schema, Job job, DeclaredSettings& s) {
  const std::string group = "What the run leaves";
  const JobPresets& presets = presets_of(job);
  OutputSettings& output = s.train.output;
  schema.text("output_dir", &output.output_dir)
      .environment("OUTPUT_DIR")
      .preset(presets.output_dir)
      .group(group)
      .help("folder of the model, its checkpoints and the run's record");
  schema.text("save_strategy", &s.save_strategy)
      .preset(presets.save_strategy)
      .choices({"no", "steps", "epoch", "best"})
      .group(group)
      .help("when a checkpoint is written");
  schema.real("save_steps", &s.train.flow.save_steps)
      .preset("500")
      .at_least(0)
      .group(group)
      .help("updates between two, below 1 a share of all");
  schema.integer("save_total_limit", &output.save_total_limit)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("older checkpoints are removed; 0: none is");
  schema.boolean("save_only_model", &output.save_only_model)
      .group(group)
      .help("checkpoints without what resuming needs");
  schema.text("resume_from_checkpoint", &s.resume)
      .group(group)
      .help("a checkpoint's folder, or true: the newest of --output_dir");
  schema.text("logging_strategy", &s.logging_strategy)
      .preset("steps")
      .choices({"no", "steps", "epoch"})
      .group(group)
      .help("when a line with the loss is printed");
  schema.real("logging_steps", &s.train.flow.logging_steps)
      .preset(presets.logging_steps)
      .at_least(0)
      .group(group)
      .help("updates between two, below 1 a share of all");
  schema.boolean("logging_first_step", &s.train.flow.logging_first_step)
      .group(group)
      .help("a line after the first, too");
  schema.text("logging_dir", &output.logging_dir)
      .group(group)
      .help("of event files; none: a folder in runs/ of --output_dir");
  schema.text("log_dir", &output.log_dir)
      .environment("LOG_DIR")
      .group(group)
      .help("of the ranks' logs, in a folder by run and job id; none: log/ of --output_dir");
  schema.boolean("disable_tqdm", &s.disable_tqdm).group(group).help("no progress bar");
}

void declare_reports(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Reports";
  ReportSettings& reports = s.train.reports;
  schema.text("report_to", &s.report_to)
      .preset("tensorboard")
      .list()
      .group(group)
      .help("tensorboard, wandb (offline), both with a comma between, all, or none");
  schema.text("run_name", &reports.run_name).environment("EXPERIMENT_NAME").group(group).help("none: --output_dir");
  schema.text("wandb_name", &reports.wandb_name).environment("WANDB_NAME").group(group).help("none: --run_name");
  schema.text("wandb_mode", &reports.wandb_mode)
      .environment("WANDB_MODE")
      .preset("offline")
      .group(group)
      .help("offline or disabled");
  schema.text("wandb_dir", &reports.wandb_dir).environment("WANDB_DIR").group(group).help("none: --output_dir");
  schema.text("wandb_run_id", &reports.wandb_run_id).environment("WANDB_RUN_ID").group(group).help("none: drawn");
  schema.text("wandb_project", &reports.wandb_project)
      .environment("WANDB_PROJECT")
      .group(group)
      .help("none: huggingface");
}

}  // namespace tessera::internal
