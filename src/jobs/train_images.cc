#include "jobs/train_images.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "state/checkpoints.h"
#include "jobs/image_files.h"
#include "jobs/run_training.h"
#include "jobs/train_plan.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/output.h"
#include "train/engine_setup.h"
#include "jobs/epoch_line.h"
#include "jobs/image_task.h"
#include "comm/exchange.h"
#include "settings/translate.h"
#include "monitor/tensor_memory.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using MakePlan = std::function<PlanReport()>;

// The settings with what was left to the run decided.
TrainSettings decided(TrainSettings settings, const World& world, const Schema& schema) {
  PrecisionSettings& precision = settings.precision;
  if (precision.half_on_gpu && world.device().is_cuda()) precision.compute = NumberType::kFloat16;
  MergeAccumulation& merge = settings.loop.merge_accumulation;
  if (merge == MergeAccumulation::kOn) {
    throw UsageError(fmt::format(
        "{}: batch norm would see the pictures of several micro-steps as one batch, which is another model; "
        "take off, or a larger --batch_size",
        internal::shown(schema, "merge_accumulation")));
  }
  merge = MergeAccumulation::kOff;
  return settings;
}

ImageTaskOptions task_options(const TrainSettings& settings, const World& world) {
  const DataSettings& data = settings.data;
  ImageTaskOptions options;
  options.rank = world.rank();
  options.num_ranks = world.size();
  options.device = world.device();
  options.compute = scalar_type_of(settings.precision.compute);
  options.batch_size = settings.loop.batch_size;
  options.eval_batch_size = settings.loop.eval_batch_size;
  options.shuffles = data.shuffle;
  options.drops_last = data.drop_last;
  options.data_seed = static_cast<std::uint64_t>(settings.loop.data_seed);
  options.num_workers = data.num_workers;
  options.num_ahead = std::max<std::int64_t>(1, std::int64_t{data.num_workers} * data.prefetch_factor);
  options.local_metrics = settings.evaluation.local_metrics;
  return options;
}

// Whether something is to be evaluated; where that was asked for and there is nothing, UsageError.
bool evaluates(const TrainSettings& settings, const Schema& schema) {
  const bool wants =
      settings.flow.evaluation != Interval::kNo || settings.evaluation.on_start || settings.evaluation.at_end;
  if (!wants || image_folder_form(settings.data.data_dir) != ImageFolderForm::kOneTree) return wants;
  for (const char* name : {"eval_strategy", "do_eval", "eval_on_start", "metric_for_best_model",
                           "load_best_model_at_end", "early_stopping_patience"}) {
    const Setting& setting = schema.at(name);
    if (!setting.is_set() || setting.text() == "no" || setting.text() == "false") continue;
    throw UsageError(fmt::format("{}: {} has no folders train and val, so there is nothing to evaluate on",
                                 internal::shown(schema, name), settings.data.data_dir));
  }
  return false;
}

void announce(const TrainSettings& settings, const ImageModel& model, const ImageData& data, const StepPlan& plan,
              const World& world) {
  if (world.rank() != 0) return;
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : model.model->parameters()) numel += parameter.numel();
  const std::int64_t num_eval = data.evaluation ? data.evaluation->size() : 0;
  log_info("{}: {} parameters, strategy {}, {} training images of {} classes, {} validation images",
           name_of(settings.job), numel, settings.spread.strategy, data.training->size(), data.training->num_classes(),
           num_eval);
  log_info("{} steps of {} x {} images on {} rank{}, {} epochs", plan.total_steps(), settings.loop.batch_size,
           settings.loop.accumulation, world.size(), world.size() == 1 ? "" : "s", plan.num_epochs());
  if (settings.precision.compute != NumberType::kFloat32) {
    log_info("mixed precision: convolutions in {}, batch norm, loss and parameters in float32",
             settings.precision.compute == NumberType::kFloat16 ? "float16" : "bfloat16");
  }
  if (num_eval == 0) log_info("there will be no evaluation");
  if (model.model->num_classes() > data.training->num_classes()) {
    log_info("the model knows {} classes, the data have {}", model.model->num_classes(), data.training->num_classes());
  }
}

// Gives each epoch its line and its metrics.
class EpochReporter {
 public:
  // All must outlive it; the first epoch begins now.
  EpochReporter(World& world, ImageTask& task, bool local_metrics, Trainer& trainer, Console& console,
                Listeners& listeners)
      : world_(world),
        task_(task),
        local_metrics_(local_metrics),
        trainer_(trainer),
        console_(console),
        listeners_(listeners),
        begin_(steady_seconds()),
        first_step_(trainer.state().step) {}

  void on_epoch(const Update& update) {
    const ImageSums own = task_.take_training_sums();
    const std::vector<std::vector<double>> by_rank = gather_numbers(world_, {own.loss, own.num_right, own.num_images});
    const double now = steady_seconds();
    ImageSums sums;  // of those ranks that the metrics are of
    double num_images = 0;
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      num_images += by_rank[rank][2];
      if (local_metrics_ && rank > 0) continue;
      sums.loss += by_rank[rank][0];
      sums.num_right += by_rank[rank][1];
      sums.num_images += by_rank[rank][2];
    }
    EpochResult result;
    result.epoch = update.epoch + 1;
    result.num_epochs = trainer_.plan().num_epochs();
    result.learning_rate = trainer_.used_rate();
    result.train_loss = sums.mean_loss();
    result.train_accuracy = 100 * sums.accuracy();
    result.images_per_second = num_images / (now - std::exchange(begin_, now));
    add_validation(result);
    if (world_.rank() == 0) console_.print_line(format_epoch_line(result));
    listeners_.on_metrics(trainer_.now(), epoch_metrics(result));
    first_step_ = trainer_.state().step;
  }

 private:
  // Of the last evaluation within the epoch; without one there is no number.
  void add_validation(EpochResult& result) const {
    result.val_loss = result.val_accuracy = std::numeric_limits<double>::quiet_NaN();
    const std::vector<LogRecord>& history = trainer_.state().history;
    for (auto record = history.rbegin(); record != history.rend(); ++record) {
      if (record->number("step").value_or(0) <= static_cast<double>(first_step_)) return;
      const std::optional<double> loss = record->number("eval_loss"), accuracy = record->number("eval_accuracy");
      if (!loss || !accuracy) continue;
      result.val_loss = *loss;
      result.val_accuracy = 100 * *accuracy;
      return;
    }
  }

  World& world_;
  ImageTask& task_;
  bool local_metrics_;
  Trainer& trainer_;
  Console& console_;
  Listeners& listeners_;
  double begin_;
  std::int64_t first_step_;  // updates before this epoch
};

int run_trainer(World& world, ImageTask& task, const TrainRun& run, const TrainSettings& settings,
                const ImageModel& model, const std::optional<fs::path>& checkpoint, const MakePlan& plan) {
  const double begin = steady_seconds();
  // One shape of pictures: cuDNN may try its algorithms once and keep the fastest.
  if (world.device().is_cuda() && !settings.loop.full_determinism) at::globalContext().setBenchmarkCuDNN(true);
  const SavedModel saved{*model.model, model.config};
  std::optional<EpochReporter> reporter;
  RunHooks hooks;
  hooks.before = [&](Trainer& trainer, Console& console, Listeners& listeners) {
    reporter.emplace(world, task, settings.evaluation.local_metrics, trainer, console, listeners);
    trainer.after_epoch([&reporter](const Update& update) { reporter->on_epoch(update); });
  };
  hooks.after = [&](Trainer&, Console& console, Listeners&) {
    if (world.rank() != 0) return;
    console.print_line(format_execution_time(steady_seconds() - begin));
    console.print_line(format_tensor_memory(peak_tensor_bytes(world.device())));
  };
  RunParts parts{world, run, settings, task, saved, /*first_values=*/{}, checkpoint, plan};
  if (!settings.dry_run) return run_training(std::move(parts), hooks);
  check_run(parts);
  return 0;
}

}  // namespace

int train_images(World& world, const TrainRun& run) {
  const TrainSettings& given = run.settings();
  start_counting_tensors(world.device());
  prepare_output_folder(world, given.output.output_dir);
  const TrainSettings settings = decided(given, world, *run.loaded.schema);
  const std::optional<fs::path> checkpoint = checkpoint_to_resume(settings.output);
  const ImageData data = open_image_data(settings, evaluates(settings, *run.loaded.schema));
  const ImageModel model = open_image_model(settings, data.training->folder(), checkpoint, run.environment);
  ImageTask task(model.model, *data.training, data.evaluation.get(), task_options(settings, world));
  announce(settings, model, data, plan_steps(task, settings), world);
  const auto plan = [&] { return plan_of_images(settings, *model.model, data.training->size(), world); };
  return run_trainer(world, task, run, settings, model, checkpoint, plan);
}

}  // namespace tessera
