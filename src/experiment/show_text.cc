#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "experiment/resolved.h"
#include "experiment/scripts.h"
#include "train/step_plan.h"

namespace tessera {
namespace {

std::string values_text(const std::string& title, const Values& values) {
  if (values.empty()) return "";
  std::size_t name_width = 0, text_width = 0;
  for (const auto& [name, given] : values) {
    name_width = std::max(name_width, name.size());
    text_width = std::max(text_width, std::min<std::size_t>(given.text.size(), 40));
  }
  std::string text = title + "\n";
  for (const auto& [name, given] : values) {
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", name, name_width, given.text, text_width, given.origin);
  }
  return text + "\n";
}

// Of an epoch, on each rank.
std::int64_t num_batches_of(const TrainSettings& settings, const JobTraits& job, std::int64_t rows, int num_ranks) {
  const DataSettings& data = settings.data;
  const auto divided = [](std::int64_t value, std::int64_t by, bool drops_rest) {
    return drops_rest ? value / by : (value + by - 1) / by;
  };
  const std::int64_t batch = settings.loop.batch_size;
  if (!job.deals_rows) return divided(rows, batch * num_ranks, data.drop_last);
  return divided(divided(rows, num_ranks, data.sampler_drop_last), batch, data.drop_last);
}

const JobTraits& traits_of(const std::string& name, const std::vector<const JobTraits*>& jobs) {
  return **std::find_if(jobs.begin(), jobs.end(), [&](const JobTraits* job) { return job->name == name; });
}

}  // namespace

std::string steps_text(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs) {
  const LoadedTrainSettings loaded = loaded_settings(experiment, jobs);
  const TrainSettings& settings = loaded.settings;
  const std::int64_t rows = settings.data.max_train_samples;
  if (rows == 0) return "";
  const std::int64_t per_pass = settings.loop.batch_size * experiment.num_ranks();
  StepPlanOptions options;
  options.num_batches = num_batches_of(settings, traits_of(settings.job, jobs), rows, experiment.num_ranks());
  options.accumulation = settings.loop.accumulation;
  options.num_train_epochs = settings.loop.num_epochs;
  if (settings.loop.max_steps > 0) options.max_steps = settings.loop.max_steps;
  options.short_group = settings.loop.short_group;
  const StepPlan plan(options);
  return fmt::format("{} updates: {} rows, {} an update, {} updates an epoch; ends at epoch {:.2f}", plan.total_steps(),
                     rows, per_pass * options.accumulation, plan.updates_per_epoch(),
                     plan.update(plan.total_steps()).epoch_after);
}

std::string show_text(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs) {
  std::string text = fmt::format("{}{}{}\n\n", experiment.name, experiment.about.empty() ? "" : ": ", experiment.about);
  text += fmt::format("{} on {} node{} x {} {}; preset {}{}\n", experiment.job, experiment.nodes(),
                      experiment.nodes() == 1 ? "" : "s", experiment.gpus_per_node(),
                      experiment.on_gpus() ? "GPU" : "CPU rank", experiment.preset,
                      experiment.scale == Scale::kTiny ? ", scale tiny" : "");
  if (const std::string steps = steps_text(experiment, jobs); !steps.empty()) text += steps + "\n";
  const TrainSettings settings = loaded_settings(experiment, jobs).settings;
  if (const auto size = traits_of(experiment.job, jobs).num_parameters(settings)) {
    text += fmt::format("{} parameters, if the tokenizer has no more tokens than --vocab_size\n", grouped(*size));
  }
  text += "\n";
  text += values_text("settings of tessera train", experiment.settings);
  text += values_text("environment", experiment.environment);
  text += values_text("resources", experiment.resources);
  if (experiment.has_gate()) text += values_text("bandwidth gate", experiment.gate);
  for (const std::string& note : experiment.notes) text += "note: " + note + "\n";
  if (!experiment.missing.empty()) text += "note: it cannot start yet: " + experiment.missing + "\n";
  return text + "here:\n" + shell_command(local_words(experiment, "tessera")) + "\n";
}

}  // namespace tessera
