#include "jobs/text_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "jobs/run_plan.h"
#include "jobs/speed_trial.h"

namespace tessera {
namespace {

std::shared_ptr<LanguageModel> model_with_blocks(const LanguageModel& model, std::int64_t num_blocks) {
  const Json config = with_num_blocks(model.config(), num_blocks);
  auto made = make_language_model(config, "the model with fewer blocks", at::dtype(at::kFloat).device(at::kMeta));
  if (made->shape().num_layers != num_blocks) throw Error("a model's config does not say how many blocks it has");
  return made;
}

}  // namespace

TextJob::TextJob(World& world, TrainSettings settings, OpenedModel model, TextRows training,
                 std::optional<TextRows> evaluation)
    : OpenJob(world, std::move(settings), {*model.model, model.config, model.generation_config, model.tokenizer_files}),
      model_(std::move(model)),
      training_(std::move(training)),
      evaluation_(std::move(evaluation)),
      task_(model_.model, training_, evaluation_ ? &*evaluation_ : nullptr, settings_, world) {}

ParameterSource TextJob::first_values() const {
  return first_values_of(model_, static_cast<std::uint64_t>(settings_.loop.seed));
}

PlanReport TextJob::memory_plan() const {
  return plan_of_rows(settings_, model_, training_, world_,
                      settings_.loop.merge_accumulation == MergeAccumulation::kOn);
}

double TextJob::predicted_update_seconds() {
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
        const auto model = model_with_blocks(*model_.model, blocks.on_device + blocks.on_host);
        TextTask task(model, training_, nullptr, settings, world_);
        return tried_seconds(world_, task, settings, fresh_values_of(*model, /*seed=*/0), length);
      });
}

void TextJob::announce(const StepPlan& plan) const {
  log_info("{}: {} parameters, strategy {}, {} training rows, {} evaluation rows", settings_.job,
           num_parameters(*model_.model), settings_.spread.strategy, task_.num_rows(), task_.num_eval_rows());
  log_info("{} steps of {} x {} rows on {} rank{}, {} epochs", plan.total_steps(), settings_.loop.batch_size,
           settings_.loop.accumulation, world_.size(), world_.size() == 1 ? "" : "s", plan.num_epochs());
}

void settle(TrainSettings& settings, const OpenedModel& model, const TextRows& training, World& world) {
  const auto plan = [&](bool merges) { return plan_of_rows(settings, model, training, world, merges); };
  const bool merges = decide_merging(
      settings, *model.model, [&] { return plan(true); }, world);
  settings.loop.merge_accumulation = merges ? MergeAccumulation::kOn : MergeAccumulation::kOff;
  use_gpu_memory(
      settings, [&] { return plan(merges); }, world);
}

}  // namespace tessera
