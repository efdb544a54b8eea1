#include "jobs/resnet_tinyimagenet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "comm/exchange.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "jobs/epoch_line.h"
#include "jobs/image_files.h"
#include "jobs/image_task.h"
#include "jobs/loader_options.h"
#include "jobs/run_plan.h"
#include "jobs/speed_trial.h"
#include "monitor/tensor_memory.h"
#include "plan/planned_model.h"
#include "settings/resolve.h"
#include "settings/shared.h"
#include "train/step_setup.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void declare_resnet(Schema& schema, DeclaredSettings& s) {
  shared::model_name_or_path(schema, s.train.model, "Model").help("weights to start with; none: from scratch");
}

void declare_images(Schema& schema, DeclaredSettings& s) {
  const std::string group = "Data";
  schema.text("data_dir", &s.train.data.data_dir)
      .environment("DATA_DIR")
      .group(group)
      .help("folder with train/ and val/: TinyImageNet's own, or one folder per class");
  shared::image_size(schema, &s.train.data.image_size, group);
  schema.boolean("sampler_drop_last", &s.train.data.sampler_drop_last)
      .preset("true")
      .group(group)
      .help("drop images that do not divide evenly between the ranks; false: repeat the first ones, as torch does");
}

void declare_image_metrics(Schema& schema, DeclaredSettings& s) {
  schema.boolean("local_metrics", &s.train.evaluation.local_metrics)
      .group("Evaluation")
      .help("report rank 0's own metrics, not those of all ranks");
}

// The settings with all open choices decided.
TrainSettings decided(TrainSettings settings, const World& world, const Schema& schema) {
  PrecisionSettings& precision = settings.precision;
  if (precision.half_on_gpu && world.device().is_cuda()) precision.compute = NumberType::kFloat16;
  MergeAccumulation& merge = settings.loop.merge_accumulation;
  if (merge == MergeAccumulation::kOn) {
    throw UsageError(
        fmt::format("{}: batch norm would see the images of several micro-steps as one batch, which is a different "
                    "model; use off, or a larger --batch_size",
                    shown(schema, "merge_accumulation")));
  }
  merge = MergeAccumulation::kOff;
  return settings;
}

ImageTaskOptions image_task_options(const TrainSettings& settings, const World& world) {
  const DataSettings& data = settings.data;
  ImageTaskOptions options;
  options.rank = world.rank();
  options.num_ranks = world.size();
  options.device = world.device();
  options.compute = scalar_type_of(settings.precision.compute);
  options.batch_size = settings.loop.batch_size;
  options.eval_batch_size = settings.loop.eval_batch_size;
  options.shuffles = data.shuffle;
  options.drops_tail = data.sampler_drop_last;
  options.drops_short_batch = data.drop_last;
  options.data_seed = static_cast<std::uint64_t>(settings.loop.data_seed);
  options.loading =
      loader_options(data, world.device(),
                     std::max(options.batch_size, options.eval_batch_size) * 3 * data.image_size * data.image_size);
  options.tries_kernels = world.device().is_cuda() && !settings.loop.full_determinism;
  options.local_metrics = settings.evaluation.local_metrics;
  return options;
}

// Whether to evaluate. Throws UsageError if an evaluation is requested but there is nothing to evaluate on.
bool evaluates(const TrainSettings& settings, const Schema& schema) {
  const bool wants =
      settings.flow.evaluation != Interval::kNo || settings.evaluation.on_start || settings.evaluation.at_end;
  if (!wants || image_folder_form(settings.data.data_dir) != ImageFolderForm::kOneTree) return wants;
  for (const char* name : {"eval_strategy", "do_eval", "eval_on_start", "metric_for_best_model",
                           "load_best_model_at_end", "early_stopping_patience"}) {
    const Setting& setting = schema.at(name);
    if (!setting.is_set() || setting.text() == "no" || setting.text() == "false") continue;
    throw UsageError(fmt::format("{}: {} has no folders train and val, so there is nothing to evaluate on",
                                 shown(schema, name), settings.data.data_dir));
  }
  return false;
}

// Prints each epoch's line and reports its metrics.
class EpochReporter {
 public:
  // All must outlive it; the first epoch starts now.
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
    ImageSums sums;  // of the ranks that the metrics cover
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
    listeners_.on_epoch_metrics(trainer_.now(), result.epoch, epoch_metrics(result));
    first_step_ = trainer_.state().step;
  }

 private:
  // From the last evaluation within the epoch; without one there is no number.
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

// A pass is a micro-batch.
PlanReport plan_of_images(const TrainSettings& settings, ResNet50& model, std::int64_t num_images, const World& world) {
  PlannedModel planned = planned_resnet50(model, settings.data.image_size);
  StepShape pass;
  const std::int64_t num_of_rank = (num_images + world.size() - 1) / world.size();
  pass.num_sequences = pass.num_tokens = std::min(settings.loop.batch_size, num_of_rank);
  pass.longest = settings.data.image_size;
  pass.casts_parameters = true;
  return plan_of_pass(settings, model, std::move(planned), pass, world, /*merges=*/false);
}

class ImageJob : public OpenJob {
 public:
  ImageJob(World& world, TrainSettings settings, ImageModel model, ImageData data)
      : world_(world),
        settings_(std::move(settings)),
        model_(std::move(model)),
        data_(std::move(data)),
        saved_{*model_.model, model_.config},
        task_(model_.model, *data_.training, data_.evaluation.get(), image_task_options(settings_, world)) {}

  const TrainSettings& settings() const override { return settings_; }
  TrainTask& task() override { return task_; }
  const SavedModel& saved_model() const override { return saved_; }
  PlanReport memory_plan() const override {
    return plan_of_images(settings_, *model_.model, data_.training->size(), world_);
  }

  // So long that pictures decoded beforehand play no part.
  double predicted_update_seconds() override {
    const std::int64_t num_ahead = image_task_options(settings_, world_).loading.num_ahead;
    TrialLength length;
    length.uncounted = std::max(length.uncounted, 2 * num_ahead);
    length.counted = std::max(length.counted, 2 * num_ahead);
    return tried_seconds(world_, task_, settings_, first_values(), length);
  }

  void announce(const StepPlan& plan) const override {
    std::int64_t numel = 0;
    for (const at::Tensor& parameter : model_.model->parameters()) numel += parameter.numel();
    const std::int64_t num_eval = data_.evaluation ? data_.evaluation->size() : 0;
    log_info("{}: {} parameters, strategy {}, {} training images of {} classes, {} validation images", settings_.job,
             numel, settings_.spread.strategy, data_.training->size(), data_.training->num_classes(), num_eval);
    log_info("{} steps of {} x {} images on {} rank{}, {} epochs", plan.total_steps(), settings_.loop.batch_size,
             settings_.loop.accumulation, world_.size(), world_.size() == 1 ? "" : "s", plan.num_epochs());
    if (settings_.precision.compute != NumberType::kFloat32) {
      log_info("mixed precision: convolutions in {}, batch norm, loss and parameters in float32",
               settings_.precision.compute == NumberType::kFloat16 ? "float16" : "bfloat16");
    }
    if (num_eval == 0) log_info("there will be no evaluation");
    if (model_.model->num_classes() > data_.training->num_classes()) {
      log_info("the model has {} classes, the data has {}", model_.model->num_classes(), data_.training->num_classes());
    }
  }

  void before_training(Trainer& trainer, Console& console, Listeners& listeners) override {
    begin_ = steady_seconds();
    reporter_.emplace(world_, task_, settings_.evaluation.local_metrics, trainer, console, listeners);
    trainer.after_epoch([this](const Update& update) { reporter_->on_epoch(update); });
  }

  void after_saving(Trainer&, Console& console, Listeners&) override {
    if (world_.rank() != 0) return;
    console.print_line(format_execution_time(steady_seconds() - begin_));
    console.print_line(format_tensor_memory(peak_tensor_bytes(world_.device())));
  }

 private:
  World& world_;
  TrainSettings settings_;
  ImageModel model_;
  ImageData data_;
  SavedModel saved_;
  ImageTask task_;
  double begin_ = 0;
  std::optional<EpochReporter> reporter_;
};

}  // namespace

const JobTraits& resnet_tinyimagenet_traits() {
  static const JobTraits traits = {
      .name = "resnet-tinyimagenet",
      .summary = "train a ResNet-50 on TinyImageNet",
      .presets = {.batch_size = "512",
                  .eval_batch_size = "",
                  .learning_rate = "0.001",
                  .weight_decay = "1e-4",
                  .max_grad_norm = "0",
                  .optim = "sgd",
                  .momentum = "0.9",
                  .scheduler = "StepLR",
                  .save_strategy = "no",
                  .output_dir = "./resnet-tinyimagenet",
                  .num_workers = "-1"},
      .is_amp = true,
      .decays_all = true,
      .has_buffers = true,
      .deals_rows = true,
      .metrics = {"loss", "accuracy"},
      .declare_model = declare_resnet,
      .declare_data = declare_images,
      .declare_evaluation = declare_image_metrics,
      .evaluation_setting = "--data_dir",
      .has_evaluation_data = [](const TrainSettings&) { return true; },  // the folder decides
      .check =
          [](const Schema&, const DeclaredSettings& s, bool needs_data) {
            if (needs_data) require(s.train.data.data_dir, "--data_dir FOLDER (or DATA_DIR)");
          }};
  return traits;
}

std::unique_ptr<OpenJob> open_resnet_tinyimagenet(World& world, const LoadedTrainSettings& run,
                                                  const std::optional<fs::path>& checkpoint) {
  start_counting_tensors(world.device());
  TrainSettings settings = decided(run.settings, world, *run.schema);
  ImageData data = open_image_data(settings, evaluates(settings, *run.schema));
  ImageModel model = open_image_model(settings, data.training->folder(), checkpoint, run.request.environment);
  use_gpu_memory(
      settings, [&] { return plan_of_images(settings, *model.model, data.training->size(), world); }, world);
  return std::make_unique<ImageJob>(world, std::move(settings), std::move(model), std::move(data));
}

}  // namespace tessera
